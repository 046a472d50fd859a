package azure

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/source"
)

// direct is a transport without a network, so that time can be made: a handler that waits for the request's end gets no
// answer through.
type direct struct{ http.Handler }

func (d direct) Do(r *http.Request) (*http.Response, error) {
	rec := httptest.NewRecorder()
	for name, values := range r.Header { // as a server sees them
		r.Header[http.CanonicalHeaderKey(name)] = values
	}
	d.ServeHTTP(rec, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp := rec.Result()
	resp.Request = r
	if stall := resp.Header.Get("stall"); stall != "" { // the body stops there, and the connection stays
		n, err := strconv.Atoi(stall)
		if err != nil {
			return nil, err
		}
		resp.Body = io.NopCloser(io.MultiReader(io.LimitReader(resp.Body, int64(n)), waiting{r.Context()}))
	}
	return resp, nil
}

type waiting struct{ ctx context.Context }

func (w waiting) Read([]byte) (int, error) {
	<-w.ctx.Done()
	return 0, w.ctx.Err()
}

// fakeTime runs f with a store, of the settings that are used in earnest, whose n-th request handle answers.
func fakeTime(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, n int),
	f func(t *testing.T, s *Store, requests func() int)) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		store, err := New(Config{Endpoint: "http://storage.invalid/acct", Auth: "anonymous",
			Transport: direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				n++
				handle(w, r, n)
			})}})
		if err != nil {
			t.Fatal(err)
		}
		f(t, store, func() int { return n })
	})
}

func TestRetryAfter(t *testing.T) {
	for _, header := range [][2]string{{"Retry-After", "7"}, {"x-ms-retry-after-ms", "7000"}} {
		for _, status := range []int{429, 503} {
			fakeTime(t, func(w http.ResponseWriter, r *http.Request, n int) {
				if n < 3 {
					w.Header().Set(header[0], header[1])
					fail(w, status, "ServerBusy")
					return
				}
				serve(w, r)
			}, func(t *testing.T, s *Store, requests func() int) {
				began := time.Now()
				p := make([]byte, 10)
				busy := 0
				n, err := s.ReadAt(source.WithBusy(t.Context(), func() { busy++ }), "x", p, 0)
				if took := time.Since(began); err != nil || string(p[:n]) != content || requests() != 3 ||
					took != 14*time.Second || busy != 2 {
					t.Errorf("%s: %s after %d: %q, %v, %d requests in %v, %d times busy", header[0], header[1], status,
						p[:n], err, requests(), took, busy)
				}
			})
		}
	}
}

// A server that says nothing, or stops in the middle, is given up after a while and asked again, from where it stopped.
func TestTimeouts(t *testing.T) {
	for name, hang := range map[string]func(w http.ResponseWriter, r *http.Request){
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"half a body": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("stall", "4")
			serve(w, r)
		},
	} {
		t.Run(name, func(t *testing.T) {
			fakeTime(t, func(w http.ResponseWriter, r *http.Request, n int) {
				if n == 1 {
					hang(w, r)
					return
				}
				serve(w, r)
			}, func(t *testing.T, s *Store, requests func() int) {
				began := time.Now()
				p := make([]byte, 10)
				n, err := s.ReadAt(t.Context(), "x", p, 0)
				if took := time.Since(began); err != nil || string(p[:n]) != content || requests() != 2 ||
					took < time.Minute || took > 2*time.Minute {
					t.Errorf("once: %q, %v, %d requests in %v", p[:n], err, requests(), took)
				}
			})
			fakeTime(t, func(w http.ResponseWriter, r *http.Request, _ int) { hang(w, r) },
				func(t *testing.T, s *Store, _ func() int) {
					if n, err := s.ReadAt(t.Context(), "x", make([]byte, 10), 0); name == "no answer" && (n != 0 ||
						err == nil) {
						t.Errorf("always: %d, %v", n, err)
					}
				})
		})
	}
}

// Every request ends when its context does: before the answer, in its body, and while it waits to try again.
func TestRequestsEndWithTheirContext(t *testing.T) {
	for name, handle := range map[string]func(w http.ResponseWriter, r *http.Request){
		"no answer": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done() },
		"in the body": func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("stall", "4")
			serve(w, r)
		},
		"between attempts": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", "15")
			fail(w, 503, "ServerBusy")
		},
	} {
		for what, call := range map[string]func(ctx context.Context, s *Store) error{
			"ReadAt": func(ctx context.Context, s *Store) error {
				_, err := s.ReadAt(ctx, "x", make([]byte, 10), 0)
				return err
			},
			"List": func(ctx context.Context, s *Store) (err error) {
				for _, err = range s.List(ctx, "log/", "") {
				}
				return err
			},
			"List by delimiter": func(ctx context.Context, s *Store) (err error) {
				for _, err = range s.List(ctx, "log/", "/") {
				}
				return err
			},
		} {
			if name == "in the body" && what != "ReadAt" {
				continue // serve knows ranges only
			}
			fakeTime(t, func(w http.ResponseWriter, r *http.Request, _ int) { handle(w, r) },
				func(t *testing.T, s *Store, requests func() int) {
					ctx, cancel := context.WithCancel(t.Context())
					began := time.Now()
					done := make(chan error, 1)
					go func() { done <- call(ctx, s) }()
					synctest.Wait() // it hangs
					cancel()
					err := <-done
					if took := time.Since(began); !errors.Is(err, context.Canceled) || took != 0 || requests() != 1 {
						t.Errorf("%s, %s: %v after %v and %d requests", what, name, err, took, requests())
					}
				})
		}
	}
	store, _ := server(t, func(w http.ResponseWriter, r *http.Request, _ int) { serve(w, r) })
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.ReadAt(ctx, "x", make([]byte, 4), 0); !errors.Is(err, context.Canceled) {
		t.Errorf("over a network: %v", err)
	}
}
