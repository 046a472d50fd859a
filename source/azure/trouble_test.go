package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobfeed/source"
)

// troubles are what a request may meet instead of its answer.
var troubles = map[string]func(w http.ResponseWriter, r *http.Request, b *blobs){
	"401": func(w http.ResponseWriter, _ *http.Request, _ *blobs) { fail(w, 401, "NoAuthenticationInformation") },
	"403": func(w http.ResponseWriter, _ *http.Request, _ *blobs) {
		fail(w, 403, "AuthorizationPermissionMismatch")
	},
	"404":        func(w http.ResponseWriter, _ *http.Request, _ *blobs) { fail(w, 404, "") },
	"409":        func(w http.ResponseWriter, _ *http.Request, _ *blobs) { fail(w, 409, "BlobImmutableDueToPolicy") },
	"412":        func(w http.ResponseWriter, _ *http.Request, _ *blobs) { fail(w, 412, "ConditionNotMet") },
	"416":        func(w http.ResponseWriter, _ *http.Request, _ *blobs) { fail(w, 416, "InvalidRange") },
	"429":        func(w http.ResponseWriter, _ *http.Request, _ *blobs) { fail(w, 429, "TooManyRequests") },
	"500":        func(w http.ResponseWriter, _ *http.Request, _ *blobs) { fail(w, 500, "InternalError") },
	"503":        func(w http.ResponseWriter, _ *http.Request, _ *blobs) { fail(w, 503, "ServerBusy") },
	"204":        func(w http.ResponseWriter, _ *http.Request, _ *blobs) { w.WriteHeader(204) },
	"200, empty": func(w http.ResponseWriter, _ *http.Request, _ *blobs) { w.WriteHeader(200) },
	"200, a page to log in": func(w http.ResponseWriter, _ *http.Request, _ *blobs) {
		w.Header().Set("Content-Type", "text/html")
		_, _ = io.WriteString(w, "<html>log in</html>")
	},
	"302":   func(w http.ResponseWriter, _ *http.Request, _ *blobs) { w.WriteHeader(302) },
	"reset": func(http.ResponseWriter, *http.Request, *blobs) { panic(http.ErrAbortHandler) },
	"reset in the body": func(w http.ResponseWriter, r *http.Request, b *blobs) {
		rec := httptest.NewRecorder()
		b.ServeHTTP(rec, r)
		maps.Copy(w.Header(), rec.Header())
		w.Header().Set("Content-Length", fmt.Sprint(rec.Body.Len()))
		w.WriteHeader(rec.Code)
		_, _ = w.Write(rec.Body.Bytes()[:rec.Body.Len()/2])
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	},
}

// Whatever goes wrong, with whichever request: as long as it does, the reader has an error and no event too few behind
// it; when it is over, the reader has all events. It is never the end of the feed.
func TestTroubleIsNeverTheEndOfTheFeed(t *testing.T) {
	want := []string{"a", "b", "c"}
	b := feed()
	var mu sync.Mutex // a connection that was reset may still be served when the next request comes
	var match func(r *http.Request) bool
	var what func(w http.ResponseWriter, r *http.Request, b *blobs)
	var left int
	troubled := func(r *http.Request) (do func(w http.ResponseWriter, r *http.Request, b *blobs)) {
		mu.Lock()
		defer mu.Unlock()
		if left == 0 || !match(r) {
			return nil
		}
		left--
		return what
	}
	trouble := func(n int, with func(r *http.Request) bool, do func(w http.ResponseWriter, r *http.Request, b *blobs)) {
		mu.Lock()
		defer mu.Unlock()
		left, match, what = n, with, do
	}
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if do := troubled(r); do != nil {
			do(w, r, b)
			return
		}
		b.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	store, err := New(Config{Endpoint: s.URL + "/acct", Auth: "anonymous", Retry: policy.RetryOptions{MaxRetries: 2,
		RetryDelay: time.Microsecond, MaxRetryDelay: time.Microsecond}})
	if err != nil {
		t.Fatal(err)
	}
	for kind, match := range kinds {
		for name, f := range troubles {
			t.Run(kind+", "+name, func(t *testing.T) {
				trouble(-1, match, f)
				ids, err := read(t.Context(), store)
				if err == nil || errors.Is(err, source.ErrNotFound) || errors.Is(err, source.ErrNotEnabled) {
					t.Errorf("always: %v, %v", ids, err)
				}
				if name == "403" && !strings.Contains(err.Error(), "role Storage Blob Data Reader") {
					t.Errorf("it does not say what to do: %v", err)
				}
				trouble(1, match, f)
				// not all of it is tried again below; the engine does
				if ids, err = read(t.Context(), store); err != nil {
					ids, err = read(t.Context(), store)
				}
				if err != nil || !slices.Equal(ids, want) {
					t.Errorf("once: %v, %v", ids, err)
				}
			})
		}
	}
}

// The bytes of a range come in any portions; what is missing is asked for, and nothing but that.
func TestShortBodies(t *testing.T) {
	for _, portion := range []int{1, 3, 9} {
		store, requests := server(t, func(w http.ResponseWriter, r *http.Request, _ int) {
			var from, to int
			_, _ = fmt.Sscanf(r.Header.Get("x-ms-range"), "bytes=%d-%d", &from, &to)
			to = min(from+portion, len(content))
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to-1, len(content)))
			w.Header().Set("Content-Length", fmt.Sprint(to-from))
			w.WriteHeader(http.StatusPartialContent)
			_, _ = io.WriteString(w, content[from:to])
		})
		p := make([]byte, 20)
		n, err := store.ReadAt(t.Context(), "x", p, 0)
		if want := (len(content) + portion - 1) / portion; err != nil || string(p[:n]) != content ||
			requests() != want {
			t.Errorf("portions of %d: %q, %v in %d requests, want %d", portion, p[:n], err, requests(), want)
		}
	}
}

// At the end of a blob there is nothing new, behind it neither: no error, and no bytes.
func TestReadAtTheEndOfABlob(t *testing.T) {
	store, requests := server(t, func(w http.ResponseWriter, r *http.Request, _ int) { serve(w, r) })
	for _, offset := range []int64{10, 11, 1 << 40} {
		if n, err := store.ReadAt(t.Context(), "x", make([]byte, 4), offset); n != 0 || err != nil {
			t.Errorf("at %d: %d, %v", offset, n, err)
		}
	}
	if requests() != 3 {
		t.Errorf("%d requests: 416 is no reason to ask again", requests())
	}
}

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
				n, err := s.ReadAt(t.Context(), "x", p, 0)
				if took := time.Since(began); err != nil || string(p[:n]) != content || requests() != 3 ||
					took != 14*time.Second {
					t.Errorf("%s: %s after %d: %q, %v, %d requests in %v", header[0], header[1], status, p[:n], err,
						requests(), took)
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
