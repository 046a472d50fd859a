package azure

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobfeed/source"
)

// server answers as the service does, by a handler, and counts requests.
func server(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, n int)) (_ *Store, requests func() int) {
	t.Helper()
	var n atomic.Int64 // a connection that broke off may still be served when the next is there
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		handle(w, r, int(n.Add(1)))
	}))
	t.Cleanup(s.Close)
	store, err := New(Config{Endpoint: s.URL + "/acct", Auth: "anonymous", Retry: policy.RetryOptions{MaxRetries: 3,
		RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	return store, func() int { return int(n.Load()) }
}

const content = "0123456789"

// serve answers a range request for content.
func serve(w http.ResponseWriter, r *http.Request) {
	var from, to int
	if _, err := fmt.Sscanf(r.Header.Get("x-ms-range"), "bytes=%d-%d", &from, &to); err != nil {
		http.Error(w, "no range", http.StatusBadRequest)
		return
	}
	if from >= len(content) {
		fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
		return
	}
	to = min(to, len(content)-1)
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(content)))
	w.Header().Set("Content-Length", fmt.Sprint(to-from+1))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = w.Write([]byte(content[from : to+1]))
}

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.WriteHeader(status)
}

// A range longer than any other answer comes with one request: the connection would be closed for what is cut off.
func TestReadOfALongRange(t *testing.T) {
	const size = 2 * maxAnswer
	store, requests := server(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Range", fmt.Sprintf("bytes 0-%d/%d", size-1, size))
		w.Header().Set("Content-Length", fmt.Sprint(size))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write(make([]byte, size))
	})
	n, err := store.ReadAt(t.Context(), "log/00/chunk.avro", make([]byte, size), 0)
	if n != size || err != nil || requests() != 1 {
		t.Errorf("%d bytes, %v, with %d requests", n, err, requests())
	}
}

func TestRead(t *testing.T) {
	for name, c := range map[string]struct {
		handle    func(w http.ResponseWriter, r *http.Request, n int)
		offset, n int64
		want      string
		err       error
		requests  int
	}{
		"range": {handle: func(w http.ResponseWriter, r *http.Request, _ int) { serve(w, r) }, offset: 2, n: 3,
			want: "234", requests: 1},
		"to the end": {handle: func(w http.ResponseWriter, r *http.Request, _ int) { serve(w, r) }, offset: 7, n: 100,
			want: "789", requests: 1},
		"no blob": {handle: func(w http.ResponseWriter, _ *http.Request, _ int) { fail(w, 404, "BlobNotFound") },
			n: 5, err: source.ErrNotFound, requests: 1},
		"no container": {handle: func(w http.ResponseWriter, _ *http.Request, _ int) {
			fail(w, 404, "ContainerNotFound")
		}, n: 5, err: source.ErrNoFeed, requests: 1},
		"busy": {handle: func(w http.ResponseWriter, r *http.Request, n int) {
			if n < 3 {
				fail(w, 503, "ServerBusy")
				return
			}
			serve(w, r)
		}, n: 4, want: "0123", requests: 3},
		// The body breaks off: what is missing is asked for again, from where it broke.
		"cut": {handle: func(w http.ResponseWriter, r *http.Request, n int) {
			if n > 1 {
				serve(w, r)
				return
			}
			w.Header().Set("Content-Range", "bytes 0-9/10")
			w.Header().Set("Content-Length", "10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte(content[:4]))
			panic(http.ErrAbortHandler)
		}, n: 10, want: content, requests: 2},
		// Azurite at the end of a blob.
		"empty": {handle: func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Range", "bytes 10-9/10")
			w.WriteHeader(http.StatusPartialContent)
		}, offset: 10, n: 5, requests: 1},
	} {
		t.Run(name, func(t *testing.T) {
			store, requests := server(t, c.handle)
			got := make([]byte, c.n)
			n, err := store.ReadAt(t.Context(), "log/00/x.avro", got, c.offset)
			if string(got[:n]) != c.want || !errors.Is(err, c.err) {
				t.Errorf("%q, %v", got[:n], err)
			}
			if requests() != c.requests {
				t.Errorf("%d requests, want %d", requests(), c.requests)
			}
		})
	}
}

// A body that always breaks off is an error, not the end.
func TestReadGivesUp(t *testing.T) {
	store, _ := server(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("Content-Range", "bytes 0-9/10")
		w.Header().Set("Content-Length", "10")
		w.WriteHeader(http.StatusPartialContent)
		panic(http.ErrAbortHandler)
	})
	if n, err := store.ReadAt(t.Context(), "x", make([]byte, 10), 0); err == nil {
		t.Errorf("%d bytes and no error", n)
	}
}

func TestListPages(t *testing.T) {
	page := func(next string, body string) string {
		return "\ufeff" + `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ContainerName="$blobchangefeed"><Blobs>` + body + `</Blobs><NextMarker>` + next + `</NextMarker></EnumerationResults>`
	}
	store, requests := server(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		w.Header().Set("Content-Type", "application/xml")
		if r.URL.Query().Get("marker") == "" {
			_, _ = w.Write([]byte(page(
				"more",
				`<Blob><Name>b.avro</Name><Properties><Content-Length>7</Content-Length><Etag>0x1</Etag></Properties></Blob><BlobPrefix><Name>a/</Name></BlobPrefix>`,
			)))
			return
		}
		_, _ = w.Write(
			[]byte(
				page(
					"",
					`<Blob><Name>d.avro</Name><Properties><Content-Length>8</Content-Length></Properties></Blob><BlobPrefix><Name>c/</Name></BlobPrefix>`,
				),
			),
		)
	})
	var got []string
	for e, err := range store.List(t.Context(), "", "/") {
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprintf("%s:%d", e.Name, e.Size))
	}
	if s := strings.Join(got, " "); s != "a/:0 b.avro:7 c/:0 d.avro:8" || requests() != 2 {
		t.Errorf("%s in %d requests", s, requests())
	}
}

func TestEndpoint(t *testing.T) {
	for text, want := range map[string]string{
		"https://Acct.blob.core.windows.net":                     "https://Acct.blob.core.windows.net/$blobchangefeed acct",
		"https://acct.blob.core.windows.net/":                    "https://acct.blob.core.windows.net/$blobchangefeed acct",
		"https://acct.blob.core.windows.net/$blobchangefeed":     "https://acct.blob.core.windows.net/$blobchangefeed acct",
		"https://acct.dfs.core.windows.net":                      "https://acct.blob.core.windows.net/$blobchangefeed acct",
		"http://127.0.0.1:10000/devstoreaccount1":                "http://127.0.0.1:10000/devstoreaccount1/$blobchangefeed devstoreaccount1",
		"acct.blob.core.windows.net":                             "error",
		"https://acct.blob.core.windows.net?sv=2020&sig=secret%": "error",
	} {
		where, account, err := endpoint(text)
		got := where + " " + strings.ToLower(account)
		if err != nil {
			got = "error"
			if strings.Contains(err.Error(), "secret") {
				t.Errorf("%s: the error shows the signature: %v", text, err)
			}
		}
		if got != want {
			t.Errorf("%s: %s, want %s", text, got, want)
		}
	}
}
