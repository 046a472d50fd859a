package azure

import (
	"bytes"
	"encoding/base64"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"
)

// A proxy that ignores the range sends the blob's begin with 200: those are other bytes than asked for.
func TestReadChecksWhatItGot(t *testing.T) {
	for name, handle := range map[string]func(w http.ResponseWriter, r *http.Request, n int){
		"no range": func(w http.ResponseWriter, _ *http.Request, _ int) { _, _ = w.Write([]byte(content)) },
		"another range": func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Range", "bytes 0-3/10")
			w.WriteHeader(http.StatusPartialContent)
			_, _ = w.Write([]byte(content[:4]))
		},
	} {
		store, _ := server(t, handle)
		p := make([]byte, 4)
		if n, err := store.ReadAt(t.Context(), "x", p, 4); err == nil {
			t.Errorf("%s: %q and no error", name, p[:n])
		}
	}
}

// A connection that breaks every few bytes still gets on: only attempts without a byte count.
func TestReadGetsOn(t *testing.T) {
	store, requests := server(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		var from, to int
		if _, err := fmt.Sscanf(r.Header.Get("x-ms-range"), "bytes=%d-%d", &from, &to); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-9/10", from))
		w.Header().Set("Content-Length", fmt.Sprint(10-from))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write([]byte(content[from : from+1]))
		if from < 9 {
			_ = http.NewResponseController(w).Flush()
			panic(http.ErrAbortHandler)
		}
	})
	p := make([]byte, 10)
	if n, err := store.ReadAt(t.Context(), "x", p, 0); err != nil || string(p[:n]) != content || requests() != 10 {
		t.Errorf("%q, %v, %d requests", p[:n], err, requests())
	}
}

// A 200 that is no listing, as a captive portal sends, is an error: not a panic, and not an empty feed.
func TestListOfSomethingElse(t *testing.T) {
	for _, body := range []string{"", "<html>log in</html>",
		`<?xml version="1.0"?><EnumerationResults></EnumerationResults>`, `{"blobs":[]}`} {
		store, _ := server(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", "application/xml")
			_, _ = w.Write([]byte(body))
		})
		for _, delimiter := range []string{"", "/"} {
			failed := false
			for _, err := range store.List(t.Context(), "log/", delimiter) {
				failed = err != nil
			}
			if !failed {
				t.Errorf("%q with %q: an empty listing", body, delimiter)
			}
		}
	}
}

// The signature is in the URL, and Go's errors show the URL.
func TestErrorsHideTheSignature(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // nobody listens
	observed := 0
	config := Config{Endpoint: "http://" + l.Addr().String() + "/acct", Auth: "sas", SAS: "?sv=2020&sig=hunter2\n",
		Observe: func(_ string, _ int, _ time.Duration, _ int64, err error) {
			if observed++; err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "refused") {
				t.Errorf("observing: %v", err)
			}
		}}
	store, err := New(config)
	if err != nil {
		t.Fatal(err)
	}
	_, err = store.ReadAt(t.Context(), "x", make([]byte, 1), 0)
	if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "refused") {
		t.Errorf("reading: %v", err)
	}
	for _, delimiter := range []string{"", "/"} {
		for _, err := range store.List(t.Context(), "", delimiter) {
			if err == nil || strings.Contains(err.Error(), "hunter2") || !strings.Contains(err.Error(), "refused") {
				t.Errorf("listing: %v", err)
			}
		}
	}
	if observed != 3 {
		t.Errorf("%d requests are observed", observed)
	}
	config.Observe = nil
	config.SAS = "sv=2020&sig=hunt\ner2" // no URL at all: the parser's error quotes it
	if store, err = New(config); err == nil {
		_, err = store.ReadAt(t.Context(), "x", make([]byte, 1), 0)
	}
	if err == nil || strings.Contains(err.Error(), "hunt") || strings.Contains(err.Error(), "er2") {
		t.Errorf("reading with a bad signature: %v", err)
	}
}

// Every way to authenticate puts on the wire what it should.
func TestAuth(t *testing.T) {
	var auth, query, path string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		auth, query, path = r.Header.Get("Authorization"), r.URL.RawQuery, r.URL.Path
		serve(w, r)
	}))
	defer s.Close()
	key := base64.StdEncoding.EncodeToString([]byte("hunter2"))
	for name, c := range map[string]struct {
		Config
		auth, query string
	}{
		"shared_key": {Config{Endpoint: s.URL + "/acct", Key: key}, "SharedKey acct:", ""},
		"sas":        {Config{Endpoint: s.URL + "/acct", SAS: "?sv=1&sig=x"}, "", "sig=x"},
		"anonymous":  {Config{Endpoint: s.URL + "/acct"}, "", ""},
		"connection_string": {Config{ConnectionString: "DefaultEndpointsProtocol=http;AccountName=acct;AccountKey=" +
			key + ";BlobEndpoint=" + s.URL + "/acct"}, "SharedKey acct:", ""},
	} {
		c.Auth = name
		store, err := New(c.Config)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		p := make([]byte, 3)
		if _, err := store.ReadAt(t.Context(), "meta/segments.json", p, 0); err != nil ||
			!bytes.Equal(p, []byte("012")) {
			t.Errorf("%s: %q, %v", name, p, err)
		}
		if path != "/acct/$blobchangefeed/meta/segments.json" || !strings.HasPrefix(auth, c.auth) ||
			(auth == "") != (c.auth == "") || !strings.Contains(query, c.query) {
			t.Errorf("%s: %s, Authorization %q, query %q", name, path, auth, query)
		}
		if store.Account() != "acct" || store.ID() != strings.TrimPrefix(s.URL, "http://")+"/acct" {
			t.Errorf("%s: account %s of %s", name, store.Account(), store.ID())
		}
	}
	for name, c := range map[string]Config{
		"credentials over http": {Endpoint: s.URL + "/acct"},
		"no key":                {Endpoint: s.URL + "/acct", Auth: "shared_key"},
		"no base64":             {Endpoint: s.URL + "/acct", Auth: "shared_key", Key: "hunter2!"},
		"no signature":          {Endpoint: s.URL + "/acct", Auth: "sas"},
		"no connection string":  {Auth: "connection_string"},
		"bad connection string": {Auth: "connection_string", ConnectionString: "hunter2!"},
		"unknown":               {Endpoint: s.URL + "/acct", Auth: "kerberos"},
	} {
		if _, err := New(c); err == nil || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Listings that the service sent in 2020, byte for byte.
func TestRealListings(t *testing.T) {
	for file, want := range map[string]string{
		"years.xml":    "idx/segments/1601/ idx/segments/2020/",
		"segments.xml": "idx/segments/2020/01/16/2100/meta.json",
		"chunks.xml":   "log/00/2020/06/01/1900/00000.avro:23562:2020-06-01T19:39:41Z",
	} {
		body, err := os.ReadFile("testdata/" + file)
		if err != nil {
			t.Fatal(err)
		}
		store, _ := server(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
			w.Header().Set("Content-Type", "application/xml")
			_, _ = w.Write(body)
		})
		delimiter := ""
		if file == "years.xml" {
			delimiter = "/"
		}
		var got []string
		for e, err := range store.List(t.Context(), "", delimiter) {
			if err != nil {
				t.Fatal(file, err)
			}
			s := e.Name
			if file == "chunks.xml" {
				s = fmt.Sprintf("%s:%d:%s", e.Name, e.Size, e.Modified.UTC().Format(time.RFC3339))
			}
			got = append(got, s)
		}
		if s := strings.Join(got, " "); !strings.HasPrefix(s, want) || !bytes.HasPrefix(body, []byte("\xef\xbb\xbf")) {
			t.Errorf("%s: %s", file, s)
		}
	}
}

// answers is a transport that gives one answer.
type answers struct{ http.Response }

// Do implements policy.Transporter.
func (a *answers) Do(r *http.Request) (*http.Response, error) {
	resp := a.Response
	resp.Request, resp.Body = r, io.NopCloser(strings.NewReader("0123456789"))
	return &resp, nil
}

// A length that no body has: HTTP/2 passes the header on as it was sent.
func TestReadOfANegativeLength(t *testing.T) {
	a := &answers{http.Response{StatusCode: http.StatusPartialContent, Header: http.Header{
		"Content-Length": {"-1"}, "Content-Range": {"bytes 0-9/10"}}}}
	s, err := New(Config{Endpoint: "https://acct.blob.core.windows.net", Auth: "anonymous", Transport: a})
	if err != nil {
		t.Fatal(err)
	}
	if n, err := s.ReadAt(t.Context(), "x", make([]byte, 10), 0); err == nil || !strings.Contains(err.Error(), "-1") {
		t.Errorf("%d bytes, %v", n, err)
	}
}
