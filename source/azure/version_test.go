package azure

import (
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/source/inventory"
)

// requests notes what arrives, and answers each kind of request.
type requests struct {
	mu  sync.Mutex
	all []*http.Request
}

func (n *requests) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	n.mu.Lock()
	n.all = append(n.all, r.Clone(r.Context()))
	n.mu.Unlock()
	w.Header().Set("Date", time.Now().UTC().Format(http.TimeFormat))
	w.Header().Set("x-ms-version", r.Header.Get("x-ms-version"))
	switch {
	case r.URL.Query().Get("comp") == "list" && r.URL.Query().Get("restype") == "container":
		_, _ = io.WriteString(w, `<EnumerationResults><Blobs></Blobs><NextMarker/></EnumerationResults>`)
	case r.URL.Query().Get("comp") == "list":
		_, _ = io.WriteString(w, `<EnumerationResults><Containers></Containers><NextMarker/></EnumerationResults>`)
	case r.Method == http.MethodHead:
	default:
		serve(w, r)
	}
}

// allKinds makes one request of each kind that the bridge makes.
func allKinds(t *testing.T, c Config) {
	t.Helper()
	s, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	for _, delimiter := range []string{"", "/"} {
		for _, err := range s.List(t.Context(), "idx/", delimiter) {
			if err != nil {
				t.Error(err)
			}
		}
	}
	if _, err := s.ReadAt(t.Context(), "meta/segments.json", make([]byte, 3), 0); err != nil {
		t.Error(err)
	}
	v, err := s.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := v.Containers(t.Context(), ""); err != nil {
		t.Error(err)
	}
	if _, err := v.List(t.Context(), inventory.Query{Container: "photos", From: "m", Max: 10}); err != nil {
		t.Error(err)
	}
	if _, _, err := v.Exists(t.Context(), "photos", "ü b"); err != nil {
		t.Error(err)
	}
	if _, err := c.ReadsMore(t.Context()); err != nil {
		t.Error(err)
	}
}

// Every kind of request asks for one version, in one header, with each way to authenticate, and a key's signature is
// for what is sent.
func TestServiceVersion(t *testing.T) {
	const account = "acct"
	key := base64.StdEncoding.EncodeToString([]byte("key"))
	n := &requests{}
	srv := httptest.NewServer(n)
	defer srv.Close()
	endpoint := srv.URL + "/" + account
	for name, c := range map[string]Config{
		"anonymous":  {Endpoint: endpoint, Auth: "anonymous"},
		"sas":        {Endpoint: endpoint, Auth: "sas", SAS: "sv=2024-11-04&sig=x"},
		"shared_key": {Endpoint: endpoint, Auth: "shared_key", Account: account, Key: key},
		"connection string with a key": {Auth: "connection_string",
			ConnectionString: "AccountName=" + account + ";AccountKey=" + key + ";BlobEndpoint=" + endpoint},
		"connection string with a signature": {Auth: "connection_string",
			ConnectionString: "BlobEndpoint=" + endpoint + ";SharedAccessSignature=sv=2024-11-04&sig=x"},
	} {
		n.all = nil
		allKinds(t, c)
		if len(n.all) != 7 {
			t.Errorf("%s: %d requests", name, len(n.all))
		}
		for _, r := range n.all {
			if got := r.Header.Values("x-ms-version"); !slices.Equal(got, []string{"2026-02-06"}) {
				t.Errorf("%s: %s %s asks for %q", name, r.Method, r.URL, got)
			}
			if strings.Contains(name, "key") {
				if got, want := r.Header.Get("Authorization"), signature(r, account, []byte("key")); got != want {
					t.Errorf("%s: %s %s has the signature %s, want %s", name, r.Method, r.URL, got, want)
				}
			}
		}
		if version, err := c.Version(t.Context()); version != serviceVersion || err != nil {
			t.Errorf("%s: the account speaks %q, %v", name, version, err)
		}
	}
}

// signature computes what the service does, see "Authorize with Shared Key" in its documentation.
func signature(r *http.Request, account string, key []byte) string {
	lines := []string{r.Method}
	for _, h := range []string{"Content-Encoding", "Content-Language", "Content-Length", "Content-MD5", "Content-Type",
		"Date", "If-Modified-Since", "If-Match", "If-None-Match", "If-Unmodified-Since", "Range"} {
		lines = append(lines, r.Header.Get(h))
	}
	for _, h := range slices.Sorted(maps.Keys(r.Header)) {
		if strings.HasPrefix(strings.ToLower(h), "x-ms-") {
			lines = append(lines, strings.ToLower(h)+":"+r.Header.Get(h))
		}
	}
	resource := "/" + account + r.URL.EscapedPath()
	for _, name := range slices.Sorted(maps.Keys(r.URL.Query())) {
		resource += "\n" + strings.ToLower(name) + ":" + strings.Join(r.URL.Query()[name], ",")
	}
	mac := hmac.New(sha256.New, key)
	mac.Write([]byte(strings.Join(append(lines, resource), "\n")))
	return "SharedKey " + account + ":" + base64.StdEncoding.EncodeToString(mac.Sum(nil))
}

// Tokens go beside the same version.
func TestServiceVersionWithTokens(t *testing.T) {
	fake := &cloudFake{}
	s, err := New(Config{Endpoint: "https://acct.blob.core.windows.net", Auth: "client_secret", Tenant: "tenant",
		ClientID: "app", ClientSecret: "hunter2", Authority: "https://login.example.us", Transport: fake})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.ReadAt(t.Context(), "meta/segments.json", make([]byte, 3), 0); err != nil {
		t.Fatal(err)
	}
	if fake.version != serviceVersion || fake.bearer == "" {
		t.Errorf("asks for %q with %q", fake.version, fake.bearer)
	}
}

// An account that does not know the version is named as such, with the header, its value and a way out. The answer is a
// recorded one.
func TestUnknownServiceVersion(t *testing.T) {
	body, err := os.ReadFile("testdata/errors/2025-05-14-400-version-not-enabled.xml")
	if err != nil {
		t.Fatal(err)
	}
	s, requests := server(t, func(w http.ResponseWriter, _ *http.Request, _ int) {
		w.Header().Set("x-ms-error-code", "InvalidHeaderValue")
		w.Header().Set("Content-Type", "application/xml")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write(body)
	})
	_, err = s.ReadAt(t.Context(), "meta/segments.json", make([]byte, 3), 0)
	if err == nil {
		t.Fatal("no error")
	}
	text, do := plain.SplitRemedy(err)
	for _, part := range []string{"400 InvalidHeaderValue", "x-ms-version: 2026-02-06"} {
		if !strings.Contains(text, part) {
			t.Errorf("%q does not say %q", text, part)
		}
	}
	if !strings.Contains(do, "Endpoint=file://") || requests() != 1 {
		t.Errorf("%q after %d requests", do, requests())
	}
}
