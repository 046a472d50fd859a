package azure

import (
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
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
				if err == nil || errors.Is(err, source.ErrNotFound) || errors.Is(err, source.ErrNoFeed) {
					t.Errorf("always: %v, %v", ids, err)
				}
				if name == "403" && !strings.Contains(err.Error(), "set Auth") {
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

// A service that was never reached may be misspelled: nobody waits for retries that can't help. One that has answered
// may come back.
func TestRetriesWaitForTheFirstContact(t *testing.T) {
	noise, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer noise.Close()
	go func() {
		for conn, err := noise.Accept(); err == nil; conn, err = noise.Accept() {
			_, _ = io.WriteString(conn, "<!DOCTYPE html>\n")
			_ = conn.Close()
		}
	}()
	away, gone := httptest.NewServer(nil), httptest.NewServer(feed())
	away.Close()
	for endpoint, want := range map[string]struct {
		attempts int
		says     string
	}{
		"https://" + noise.Addr().String() + "/acct": {1, "does not speak TLS"},
		away.URL + "/acct":                           {1, "refused"},
		gone.URL + "/acct":                           {3, "refused"},
	} {
		attempts := 0
		store, err := New(Config{
			Endpoint: endpoint, Auth: "anonymous",
			Retry:   policy.RetryOptions{MaxRetries: 2, RetryDelay: time.Millisecond},
			Observe: func(string, int, time.Duration, int64, error) { attempts++ },
		})
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasPrefix(endpoint, gone.URL) {
			_, _ = store.ReadAt(t.Context(), "meta/segments.json", make([]byte, 10), 0) // it has answered
			gone.Close()
			attempts = 0
		}
		_, err = store.ReadAt(t.Context(), "meta/segments.json", make([]byte, 10), 0)
		if err == nil || attempts != want.attempts || !strings.Contains(err.Error(), want.says) {
			t.Errorf("%s: %d attempts, want %d: %v", endpoint, attempts, want.attempts, err)
		}
	}
}
