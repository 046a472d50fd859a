package azure

import (
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobfeed/internal/outbound"
)

// A redirect, to another host or only to another port, gets neither a signature nor a signed request, and is not
// believed.
func TestRedirects(t *testing.T) {
	key := base64.StdEncoding.EncodeToString([]byte("hunter2"))
	for _, c := range []Config{{Auth: "sas", SAS: "sv=1&sig=hunter2"}, {Auth: "shared_key", Key: key},
		{Auth: "anonymous"}} {
		for _, status := range []int{301, 302, 303, 307, 308} {
			var elsewhere, asked atomic.Int64
			other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				elsewhere.Add(1)
				serve(w, r)
			}))
			defer other.Close()
			s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				asked.Add(1)
				http.Redirect(w, r, other.URL+r.URL.Path+"?"+r.URL.RawQuery, status)
			}))
			defer s.Close()
			c.Endpoint, c.Retry = s.URL+"/acct", policy.RetryOptions{MaxRetries: 3, RetryDelay: time.Millisecond}
			store, err := New(c)
			if err != nil {
				t.Fatal(err)
			}
			_, read := store.ReadAt(t.Context(), "meta/segments.json", make([]byte, 3), 0)
			errs := []error{read}
			for _, delimiter := range []string{"", "/"} {
				for _, err := range store.List(t.Context(), "idx/", delimiter) {
					errs = append(errs, err)
				}
			}
			for _, err := range errs {
				var away *outbound.RedirectError
				if !errors.As(err, &away) || away.To != other.URL || strings.Contains(err.Error(), "hunter2") {
					t.Errorf("%s, %d: %v", c.Auth, status, err)
				}
			}
			if elsewhere.Load() > 0 || asked.Load() != 3 {
				t.Errorf("%s, %d: %d requests, %d elsewhere", c.Auth, status, asked.Load(), elsewhere.Load())
			}
		}
	}
}

// Nothing makes us read, or list, without an end.
func TestAnswersAreBounded(t *testing.T) {
	var sent atomic.Int64
	endless := func(begin string, status int) http.HandlerFunc {
		part := strings.Repeat("<Blob><Name>x</Name></Blob>", 4096)
		return func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Content-Type", "application/xml")
			w.WriteHeader(status)
			n, err := io.WriteString(w, begin)
			for ; err == nil && sent.Load() < 64<<20; n, err = io.WriteString(w, part) {
				sent.Add(int64(n))
			}
		}
	}
	for name, handle := range map[string]http.HandlerFunc{
		"listing": endless("<EnumerationResults><Blobs>", 200), "error": endless("<Error><Code>x</Code><Message>", 400),
		"error code": func(w http.ResponseWriter, _ *http.Request) { fail(w, 400, strings.Repeat("x", 60_000)) },
	} {
		sent.Store(0)
		store, _ := server(t, func(w http.ResponseWriter, r *http.Request, _ int) { handle(w, r) })
		for _, delimiter := range []string{"", "/"} {
			for _, err := range store.List(t.Context(), "", delimiter) {
				if err == nil || len(err.Error()) > 1000 || sent.Load() > 32<<20 {
					t.Fatalf("%s: %d bytes, %.1000v", name, sent.Load(), err)
				}
			}
		}
		if _, err := store.ReadAt(t.Context(), "x", make([]byte, 10), 0); err == nil || len(err.Error()) > 1000 ||
			sent.Load() > 64<<20 {
			t.Errorf("%s: %d bytes, %.1000v", name, sent.Load(), err)
		}
	}
	pages := 0
	store, _ := server(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		if pages++; r.URL.Query().Get("maxresults") != fmt.Sprint(pageSize) {
			t.Errorf("asked for %s", r.URL.RawQuery)
		}
		fmt.Fprint(w, `<EnumerationResults><Blobs /><NextMarker>more</NextMarker></EnumerationResults>`)
	})
	for _, delimiter := range []string{"", "/"} {
		pages = 0
		for _, err := range store.List(t.Context(), "", delimiter) {
			if !errors.Is(err, errPages) || pages != maxPages {
				t.Errorf("%d pages, %v", pages, err)
			}
		}
		if pages != maxPages {
			t.Errorf("%d pages and no error", pages)
		}
	}
}

// A signature is part of the URL: over http everybody on the way reads it.
func TestSignatureOverHTTP(t *testing.T) {
	const sas = "sv=1&sig=hunter2"
	for name, c := range map[string]struct {
		Config
		ok bool
	}{
		"this machine": {Config{Endpoint: "http://127.0.0.1:10000/acct", Auth: "sas", SAS: sas}, true},
		"its name":     {Config{Endpoint: "http://localhost:10000/acct", Auth: "sas", SAS: sas}, true},
		"https":        {Config{Endpoint: "https://acct.blob.core.windows.net", Auth: "sas", SAS: sas}, true},
		"another host": {Config{Endpoint: "http://azurite:10000/acct", Auth: "sas", SAS: sas}, false},
		"in a string": {Config{ConnectionString: "BlobEndpoint=http://acct.example/;SharedAccessSignature=" + sas,
			Auth: "connection_string"}, false},
		"in a string, here": {Config{ConnectionString: "BlobEndpoint=http://127.0.0.1:1/acct;SharedAccessSignature=" +
			sas, Auth: "connection_string"}, true},
		"anonymous": {Config{Endpoint: "http://azurite:10000/acct", Auth: "anonymous"}, true},
		"a key": {Config{Endpoint: "http://azurite:10000/acct", Auth: "shared_key", Key: "aHVudGVyMg=="},
			true}, // signs, and stays here
	} {
		_, err := New(c.Config)
		if (err == nil) != c.ok || err != nil && (strings.Contains(err.Error(), "hunter2") ||
			!strings.Contains(err.Error(), "use https")) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
