package azure

import (
	"bytes"
	"context"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
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

// blobs answers as the service does for a container with those blobs, its listings in pages of so many lines. The service
// may also send pages without a line, and says then, too, where the next one begins.
type blobs struct {
	content map[string]string
	page    int
	empty   bool // every second page has no line
}

func (b *blobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("comp") == "list" {
		b.list(w, q.Get("prefix"), q.Get("delimiter"), q.Get("marker"))
		return
	}
	text, ok := b.content[strings.TrimPrefix(r.URL.Path, "/acct/$blobchangefeed/")]
	if !ok {
		fail(w, http.StatusNotFound, "BlobNotFound")
		return
	}
	var from, to int
	if _, err := fmt.Sscanf(r.Header.Get("x-ms-range"), "bytes=%d-%d", &from, &to); err != nil || from >= len(text) {
		fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
		return
	}
	to = min(to, len(text)-1)
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(text)))
	w.Header().Set("Content-Length", fmt.Sprint(to-from+1))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = io.WriteString(w, text[from:to+1])
}

func (b *blobs) list(w http.ResponseWriter, prefix, delimiter, marker string) {
	var lines []string // the blobs of a page come before its prefixes, as the service sends them
	var names []string
	for _, name := range slices.Sorted(maps.Keys(b.content)) {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if i := strings.Index(rest, "/"); delimiter != "" && i >= 0 {
				name = prefix + rest[:i+1]
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	from, _ := strconv.Atoi(strings.TrimSuffix(marker, "-"))
	pause := b.empty && marker != "" && !strings.HasSuffix(marker, "-")
	to := min(from+b.page, len(names))
	next := fmt.Sprint(to)
	switch {
	case pause:
		to, next = from, marker+"-"
	case to == len(names):
		next = ""
	}
	for _, isPrefix := range []bool{false, true} {
		for _, name := range names[from:to] {
			if text, ok := b.content[name]; ok && !isPrefix {
				lines = append(lines, fmt.Sprintf("<Blob><Name>%s</Name><Properties><Content-Length>%d</Content-Length><Etag>0x1</Etag></Properties></Blob>", name, len(text)))
			} else if !ok && isPrefix {
				lines = append(lines, "<BlobPrefix><Name>"+name+"</Name></BlobPrefix>")
			}
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, "\ufeff"+`<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>`+strings.Join(lines, "")+`</Blobs><NextMarker>`+next+`</NextMarker></EnumerationResults>`)
}

// feed returns a whole one, small: a shard of two chunks, whose schema has one field.
func feed() *blobs {
	schema := `{"type":"record","name":"E","fields":[{"name":"id","type":"string"}]}`
	sync := strings.Repeat("\x09", 16)
	head := "Obj\x01\x02\x16avro.schema" + string([]byte{byte(len(schema)<<1&0x7f | 0x80), byte(len(schema) >> 6)}) + schema + "\x00" + sync
	return &blobs{page: 5000, content: map[string]string{
		"meta/segments.json":                     `{"lastConsumable":"2026-01-01T00:00:00Z"}`,
		"idx/segments/1601/01/01/0000/meta.json": `{}`,
		"idx/segments/2026/01/01/0000/meta.json": `{"begin":"2026-01-01T00:00:00Z","status":"Finalized","chunkFilePaths":["$blobchangefeed/log/00/2026/01/01/0000/"]}`,
		"log/00/2026/01/01/0000/00000.avro":      head + "\x02\x04\x02a" + sync + "\x02\x04\x02b" + sync,
		"log/00/2026/01/01/0000/00001.avro":      head + "\x02\x04\x02c" + sync,
	}}
}

// read is the way of a reader through a feed: every kind of request there is.
func read(ctx context.Context, s *Store) (ids []string, err error) {
	f := source.New(s, source.Options{ReadSize: 50})
	for seg, err := range f.Segments(ctx, source.Segment{}) {
		if err != nil {
			return ids, err
		}
		m, err := f.Manifest(ctx, seg)
		if err != nil {
			return ids, err
		}
		r := f.Shard(m, 0, source.ShardPosition{})
		if err := r.Poll(ctx, m.Finalized); err != nil {
			return ids, err
		}
		var b source.Batch
		for {
			err := r.Next(ctx, &b)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return ids, err
			}
			for _, e := range b.Events {
				ids = append(ids, e.ID)
			}
		}
	}
	return ids, nil
}

// kinds are the requests of read, by what they ask for.
var kinds = map[string]func(r *http.Request) bool{
	"watermark": func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "segments.json") },
	"index":     func(r *http.Request) bool { return strings.HasPrefix(r.URL.Query().Get("prefix"), "idx/") },
	"manifest":  func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "2026/01/01/0000/meta.json") },
	"chunks":    func(r *http.Request) bool { return strings.HasPrefix(r.URL.Query().Get("prefix"), "log/") },
	"chunk":     func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "00000.avro") },
}

// The feed was never enabled: an answer of its own, from whatever is asked first.
func TestChecklist01_NoContainer(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{404, "ContainerNotFound", source.ErrNotEnabled}, {409, "ContainerBeingDeleted", source.ErrNotEnabled}, {404, "BlobNotFound", source.ErrNotFound},
		{404, "ResourceNotFound", nil}, {404, "", nil}, // a proxy's: it must not look like lost history
	} {
		store, _ := server(t, func(w http.ResponseWriter, _ *http.Request, _ int) { fail(w, c.status, c.code) })
		check := func(what string, err error) {
			t.Helper()
			for _, known := range []error{source.ErrNotEnabled, source.ErrNotFound} {
				if err == nil || errors.Is(err, known) != (c.want == known) {
					t.Errorf("%d %s: %s: %v", c.status, c.code, what, err)
				}
			}
		}
		_, err := store.ReadAt(t.Context(), "meta/segments.json", make([]byte, 10), 0)
		check("reading", err)
		for _, delimiter := range []string{"", "/"} {
			err = nil
			for _, err = range store.List(t.Context(), "idx/", delimiter) {
			}
			check("listing", err)
		}
	}
	if text := source.ErrNotEnabled.Error(); !strings.Contains(text, "enable it") {
		t.Errorf("it does not say what to do: %s", text)
	}
}

// A listing of any length in pages of any size, also of none, gives every line once and in order.
func TestChecklist16_Pages(t *testing.T) {
	b := &blobs{content: map[string]string{"meta/segments.json": `{"lastConsumable":"2030-01-01T00:00:00Z"}`}}
	var want []string
	for at := time.Date(2025, 12, 30, 22, 0, 0, 0, time.UTC); len(want) < 60; at = at.Add(time.Hour) {
		name := at.Format("2006/01/02/1504")
		want = append(want, name)
		b.content["idx/segments/"+name+"/meta.json"] = ""
	}
	s := httptest.NewServer(b)
	t.Cleanup(s.Close)
	store, err := New(Config{Endpoint: s.URL + "/acct", Auth: "anonymous", Retry: policy.RetryOptions{MaxRetries: -1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []int{1, 2, 7, 5000} {
		for _, empty := range []bool{false, true} {
			b.page, b.empty = page, empty
			var got []string
			for seg, err := range source.New(store, source.Options{}).Segments(t.Context(), source.Segment{}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, seg.String())
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d, some empty: %v: %d of %d segments", page, empty, len(got), len(want))
			}
		}
	}
	// More than the service sends at once.
	b.content, b.page, b.empty = map[string]string{}, 5000, false
	for i := range 5003 {
		b.content[fmt.Sprintf("log/00/2026/01/01/0000/%05d.avro", i)] = "x"
	}
	n := 0
	for e, err := range store.List(t.Context(), "log/00/2026/01/01/0000/", "") {
		if want := fmt.Sprintf("log/00/2026/01/01/0000/%05d.avro", n); err != nil || e.Name != want || e.Size != 1 {
			t.Fatalf("line %d: %+v, %v", n, e, err)
		}
		n++
	}
	if n != 5003 {
		t.Errorf("%d lines", n)
	}
}

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

// Whatever goes wrong, with whichever request: as long as it does, the reader has an error and no event too few behind it;
// when it is over, the reader has all events. It is never the end of the feed.
func TestChecklist50_TroubleIsNoEnd(t *testing.T) {
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
	store, err := New(Config{Endpoint: s.URL + "/acct", Auth: "anonymous", Retry: policy.RetryOptions{MaxRetries: 2, RetryDelay: time.Microsecond, MaxRetryDelay: time.Microsecond}})
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
				if ids, err = read(t.Context(), store); err != nil { // not all of it is tried again below; the engine does
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
func TestChecklist50_ShortBodies(t *testing.T) {
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
		if want := (len(content) + portion - 1) / portion; err != nil || string(p[:n]) != content || *requests != want {
			t.Errorf("portions of %d: %q, %v in %d requests, want %d", portion, p[:n], err, *requests, want)
		}
	}
}

// At the end of a blob there is nothing new, behind it neither: no error, and no bytes.
func TestChecklist50_EndOfBlob(t *testing.T) {
	store, requests := server(t, func(w http.ResponseWriter, r *http.Request, _ int) { serve(w, r) })
	for _, offset := range []int64{10, 11, 1 << 40} {
		if n, err := store.ReadAt(t.Context(), "x", make([]byte, 4), offset); n != 0 || err != nil {
			t.Errorf("at %d: %d, %v", offset, n, err)
		}
	}
	if *requests != 3 {
		t.Errorf("%d requests: 416 is no reason to ask again", *requests)
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
func fakeTime(t *testing.T, handle func(w http.ResponseWriter, r *http.Request, n int), f func(t *testing.T, s *Store, requests *int)) {
	synctest.Test(t, func(t *testing.T) {
		n := 0
		store, err := New(Config{Endpoint: "http://storage.invalid/acct", Auth: "anonymous", Transport: direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			n++
			handle(w, r, n)
		})}})
		if err != nil {
			t.Fatal(err)
		}
		f(t, store, &n)
	})
}

func TestChecklist50_RetryAfter(t *testing.T) {
	for _, header := range [][2]string{{"Retry-After", "7"}, {"x-ms-retry-after-ms", "7000"}} {
		for _, status := range []int{429, 503} {
			fakeTime(t, func(w http.ResponseWriter, r *http.Request, n int) {
				if n < 3 {
					w.Header().Set(header[0], header[1])
					fail(w, status, "ServerBusy")
					return
				}
				serve(w, r)
			}, func(t *testing.T, s *Store, requests *int) {
				began := time.Now()
				p := make([]byte, 10)
				n, err := s.ReadAt(t.Context(), "x", p, 0)
				if took := time.Since(began); err != nil || string(p[:n]) != content || *requests != 3 || took != 14*time.Second {
					t.Errorf("%s: %s after %d: %q, %v, %d requests in %v", header[0], header[1], status, p[:n], err, *requests, took)
				}
			})
		}
	}
}

// A server that says nothing, or stops in the middle, is given up after a while and asked again, from where it stopped.
func TestChecklist50_Timeouts(t *testing.T) {
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
			}, func(t *testing.T, s *Store, requests *int) {
				began := time.Now()
				p := make([]byte, 10)
				n, err := s.ReadAt(t.Context(), "x", p, 0)
				if took := time.Since(began); err != nil || string(p[:n]) != content || *requests != 2 || took < time.Minute || took > 2*time.Minute {
					t.Errorf("once: %q, %v, %d requests in %v", p[:n], err, *requests, took)
				}
			})
			fakeTime(t, func(w http.ResponseWriter, r *http.Request, _ int) { hang(w, r) }, func(t *testing.T, s *Store, _ *int) {
				if n, err := s.ReadAt(t.Context(), "x", make([]byte, 10), 0); name == "no answer" && (n != 0 || err == nil) {
					t.Errorf("always: %d, %v", n, err)
				}
			})
		})
	}
}

// Every request ends when its context does: before the answer, in its body, and while it waits to try again.
func TestChecklist51_Cancel(t *testing.T) {
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
			fakeTime(t, func(w http.ResponseWriter, r *http.Request, _ int) { handle(w, r) }, func(t *testing.T, s *Store, requests *int) {
				ctx, cancel := context.WithCancel(t.Context())
				began := time.Now()
				done := make(chan error, 1)
				go func() { done <- call(ctx, s) }()
				synctest.Wait() // it hangs
				cancel()
				err := <-done
				if took := time.Since(began); !errors.Is(err, context.Canceled) || took != 0 || *requests != 1 {
					t.Errorf("%s, %s: %v after %v and %d requests", what, name, err, took, *requests)
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

// The state of one account is not another's. However the account is written, it is the same.
func TestChecklist52_Identity(t *testing.T) {
	id := func(endpoint string) string {
		t.Helper()
		s, err := New(Config{Endpoint: endpoint, Auth: "anonymous"})
		if err != nil {
			t.Fatal(err)
		}
		return s.ID()
	}
	const want = "acct.blob.core.windows.net"
	for _, same := range []string{"https://acct.blob.core.windows.net", "https://ACCT.Blob.Core.Windows.Net/", "https://acct.blob.core.windows.net/$blobchangefeed",
		"https://acct.blob.core.windows.net/$blobchangefeed/", "https://acct.dfs.core.windows.net"} {
		if got := id(same); got != want {
			t.Errorf("%s: %s", same, got)
		}
	}
	for _, other := range []string{"https://acct2.blob.core.windows.net", "https://acct.blob.core.chinacloudapi.cn", "http://127.0.0.1:10000/acct", "http://127.0.0.1:10001/acct", "http://127.0.0.1:10000/Acct"} {
		if got := id(other); got == want {
			t.Errorf("%s: %s", other, got)
		}
	}
	if id("http://127.0.0.1:10000/acct") == id("http://127.0.0.1:10001/acct") {
		t.Error("two ports are the same account")
	}
}

// The Data Lake endpoint can't list: requests go to the blob endpoint of the same account.
func TestChecklist54_DataLakeEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://acct.dfs.core.windows.net":                  "acct.blob.core.windows.net",
		"https://acct.dfs.core.windows.net/$blobchangefeed/": "acct.blob.core.windows.net",
		"https://acct.z12.dfs.storage.azure.net":             "acct.z12.blob.storage.azure.net",
		"https://acct.blob.core.windows.net":                 "acct.blob.core.windows.net",
		"https://dfs.blob.core.windows.net":                  "dfs.blob.core.windows.net",
		"https://acct.privatelink.dfs.core.windows.net":      "acct.privatelink.blob.core.windows.net",
	} {
		var host, path string
		s, err := New(Config{Endpoint: endpoint, Auth: "anonymous", Transport: direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			host, path = r.URL.Host, r.URL.Path
			serve(w, r)
		})}})
		if err != nil {
			t.Errorf("%s: %v", endpoint, err)
			continue
		}
		if _, err := s.ReadAt(t.Context(), "meta/segments.json", make([]byte, 4), 0); err != nil || host != want || path != "/$blobchangefeed/meta/segments.json" {
			t.Errorf("%s: %s%s, %v", endpoint, host, path, err)
		}
	}
}

// Whatever a server sends as a listing: no panic, and an entry for each blob of it or an error, never fewer. (The second
// page of a body that names one is empty, so that the listing ends.)
func FuzzListing(f *testing.F) {
	for _, file := range []string{"years.xml", "chunks.xml"} {
		b, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, file == "years.xml")
	}
	const open, end = `<EnumerationResults><Blobs>`, `</Blobs><NextMarker /></EnumerationResults>`
	for _, delimited := range []bool{false, true} {
		f.Add([]byte(open+end), delimited)
		f.Add([]byte(`<EnumerationResults><Blobs /><NextMarker>more</NextMarker></EnumerationResults>`), delimited)
		f.Add([]byte(`<EnumerationResults><NextMarker>more</NextMarker></EnumerationResults>`), delimited)
		f.Add([]byte(open+`<Blob><Name>log/00/00000.avro</Name><Properties><Content-Length>-5</Content-Length></Properties></Blob>`+end), delimited)
		f.Add([]byte(open+`<Blob><Name Encoded="true">a%ef%bf%bfb</Name></Blob><BlobPrefix><Name>a/</Name></BlobPrefix>`+end), delimited)
		f.Add([]byte(open+`<Blob><Name>a</Name><Properties><Content-Length>7`), delimited)
	}
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		if r.URL.Query().Get("marker") != "" {
			_, _ = w.Write([]byte(open + end))
			return
		}
		_, _ = w.Write(body)
	}))
	f.Cleanup(s.Close)
	store, err := New(Config{Endpoint: s.URL + "/acct", Auth: "anonymous", Retry: policy.RetryOptions{MaxRetries: -1}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte, delimited bool) {
		body = b
		delimiter := ""
		if delimited {
			delimiter = "/"
		}
		entries, failed := 0, false
		for e, err := range store.List(t.Context(), "", delimiter) {
			if failed {
				t.Fatal("something follows an error")
			}
			if failed = err != nil; !failed {
				entries++
				if e.IsPrefix && (!delimited || e.Size != 0) {
					t.Fatalf("prefix %+v", e)
				}
			}
		}
		if failed {
			return
		}
		var doc struct {
			Blobs *struct {
				Blob, BlobPrefix []struct{}
			}
		}
		if err := xml.Unmarshal(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), &doc); err != nil || doc.Blobs == nil {
			t.Fatalf("%d entries of what is no listing: %v", entries, err)
		}
		want := len(doc.Blobs.Blob)
		if delimited {
			want += len(doc.Blobs.BlobPrefix)
		}
		if entries != want {
			t.Fatalf("%d entries of %d", entries, want)
		}
	})
}
