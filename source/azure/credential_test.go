package azure

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// cloudFake answers as a login service and a storage service do, both over https.
type cloudFake struct {
	logins   int
	lastBody string
	authHost string
	bearer   string
	version  string
}

func (c *cloudFake) Do(r *http.Request) (*http.Response, error) {
	reply := func(status int, header map[string]string, body string) *http.Response {
		h := http.Header{"Content-Type": {"application/json"}}
		for k, v := range header {
			h.Set(k, v)
		}
		return &http.Response{StatusCode: status, Status: http.StatusText(status), Header: h,
			Body: io.NopCloser(strings.NewReader(body)), Request: r, ContentLength: int64(len(body))}
	}
	if r.URL.Host != "acct.blob.core.windows.net" {
		c.authHost = r.URL.Host
		if strings.HasSuffix(r.URL.Path, "openid-configuration") {
			base := "https://" + r.URL.Host + "/tenant"
			return reply(
				200,
				nil,
				fmt.Sprintf(
					`{"authorization_endpoint":"%s/authorize","token_endpoint":"%s/token","issuer":"%s"}`,
					base,
					base,
					base,
				),
			), nil
		}
		if r.Body != nil {
			b, err := io.ReadAll(r.Body)
			if err != nil {
				return nil, err
			}
			c.lastBody = string(b)
		}
		c.logins++
		return reply(200, nil, fmt.Sprintf(`{"token_type":"Bearer","expires_in":3600,"access_token":"token-%d"}`,
			c.logins)), nil
	}
	c.bearer, c.version = r.Header.Get("Authorization"), r.Header.Get(versionHeader)+raw(r, versionHeader)
	return reply(206, map[string]string{"Content-Range": "bytes 0-2/10", "Content-Type": "avro/binary"}, "012"), nil
}

// raw returns a header by the key that the SDK writes, which is not canonical.
func raw(r *http.Request, key string) string { return strings.Join(r.Header[key], ",") }

// Tokens of Entra ID: from the authority that the settings name, with what each way is given, and into each request.
func TestEntra(t *testing.T) {
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("federated"), 0o600); err != nil {
		t.Fatal(err)
	}
	for auth, want := range map[string][]string{
		"client_secret":     {"client_id=app", "client_secret=hunter2", "storage.azure.com"},
		"workload_identity": {"client_id=app", "client_assertion=federated", "storage.azure.com"},
	} {
		fake := &cloudFake{}
		store, err := New(Config{Endpoint: "https://acct.blob.core.windows.net", Auth: auth, Tenant: "tenant",
			ClientID: "app", ClientSecret: "hunter2",
			TokenFile: token, Authority: "https://login.example.us", Transport: fake})
		if err != nil {
			t.Fatalf("%s: %v", auth, err)
		}
		for range 2 {
			p := make([]byte, 3)
			if _, err := store.ReadAt(t.Context(), "meta/segments.json", p, 0); err != nil || string(p) != "012" {
				t.Fatalf("%s: %q, %v", auth, p, err)
			}
		}
		for _, part := range want {
			if !strings.Contains(fake.lastBody, part) {
				t.Errorf("%s: the login has no %s", auth, part)
			}
		}
		if fake.authHost != "login.example.us" || fake.bearer != "Bearer token-1" || fake.logins != 1 {
			t.Errorf("%s: %d logins at %s, %q", auth, fake.logins, fake.authHost, fake.bearer)
		}
	}
	for _, c := range []Config{
		{Endpoint: "https://acct.blob.core.windows.net", Auth: "client_secret", Tenant: "t", ClientID: "c"},
		{Endpoint: "http://127.0.0.1:1/acct", Auth: "managed_identity"},
	} {
		if _, err := New(c); err == nil {
			t.Errorf("%+v: no error", c)
		}
	}
}

// A signature that expired, or a key that was rotated, is read anew when the service refuses it.
func TestRenew(t *testing.T) {
	valid := "sig=new"
	store, _ := server(t, func(w http.ResponseWriter, r *http.Request, _ int) {
		if !strings.Contains(r.URL.RawQuery, valid) {
			fail(w, http.StatusForbidden, "AuthenticationFailed")
			return
		}
		serve(w, r)
	})
	c := store.config
	c.Auth, c.SAS = "sas", "sv=1&sig=old"
	readings := 0
	c.Renew = func() (Config, error) {
		readings++
		fresh := c
		if readings > 1 {
			return Config{}, errors.New("the file is gone")
		}
		fresh.SAS = "sv=1&sig=new"
		return fresh, nil
	}
	store, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 3)
	if _, err := store.ReadAt(t.Context(), "x", p, 0); err == nil {
		t.Fatal("no error with an expired signature")
	}
	if _, err := store.ReadAt(t.Context(), "x", p, 0); err != nil || string(p) != "012" {
		t.Errorf("%q, %v", p, err)
	}
	valid = "sig=newer"
	for range 3 { // not for each refusal
		if _, err := store.ReadAt(t.Context(), "x", p, 0); err == nil {
			t.Error("no error")
		}
	}
	if readings != 1 {
		t.Errorf("the settings were read %d times", readings)
	}
	store.renewed = time.Time{}
	if _, err := store.ReadAt(t.Context(), "x", p, 0); err == nil ||
		!strings.Contains(err.Error(), "the file is gone") {
		t.Errorf("%v", err)
	}
}

// A body that stops in the middle, its connection open, is given up in time, and read on from where it stopped.
func TestReadStalls(t *testing.T) {
	release := make(chan struct{})
	defer close(release)
	store, _ := server(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if n%2 == 0 {
			serve(w, r)
			return
		}
		w.Header().Set("Content-Range", "bytes 0-9/10")
		w.Header().Set("Content-Length", "10")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write([]byte(content[:4]))
		_ = http.NewResponseController(w).Flush()
		select {
		case <-release:
		case <-r.Context().Done():
		}
	})
	c := store.config
	c.Timeout = 50 * time.Millisecond
	store, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	p := make([]byte, 10)
	if n, err := store.ReadAt(t.Context(), "x", p, 0); err != nil || string(p[:n]) != content {
		t.Errorf("%q, %v", p[:n], err)
	}
}
