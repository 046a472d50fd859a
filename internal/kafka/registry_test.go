package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr/srfake"
)

const schema = `{"type":"record","name":"r","fields":[]}`

func opened(t *testing.T, r Registry) *Registry {
	t.Helper()
	if r.Timeout == 0 {
		r.Timeout = 5 * time.Second
	}
	if err := r.Open(); err != nil {
		t.Fatal(err)
	}
	return &r
}

func id(t *testing.T, r *Registry, subject string) int {
	t.Helper()
	id, err := r.ID(t.Context(), subject, schema)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// A schema has one id, whoever registers it and how often; who only looks up finds that, and registers nothing.
func TestRegister(t *testing.T) {
	fake := srfake.New()
	defer fake.Close()
	looks := opened(t, Registry{URLs: []string{fake.URL()}, LookUpOnly: true})
	for _, subject := range []string{"t-value", "a/b c%-value"} {
		var refused *SchemaError
		if _, err := looks.ID(t.Context(), subject, schema); !errors.As(err, &refused) || refused.Subject != subject ||
			!strings.Contains(err.Error(), "BRIDGE_REGISTRY_AUTO_REGISTER") {
			t.Errorf("looked up: %v", err)
		}
		if fake.SubjectExists(subject) {
			t.Error("looking up registers")
		}
		first := id(t, opened(t, Registry{URLs: []string{fake.URL()}}), subject)
		again := id(t, opened(t, Registry{URLs: []string{fake.URL()}}), subject)
		if found := id(t, looks, subject); first == 0 || again != first || found != first ||
			!fake.SubjectExists(subject) {
			t.Errorf("ids %d, %d, %d", first, again, found)
		}
	}
}

// Every request is told of, those without an answer, too; what is known is not asked again.
func TestRegistryObserved(t *testing.T) {
	gone, fake := srfake.New(), srfake.New()
	gone.Close()
	defer fake.Close()
	var told []string
	observe := func(op string, status int, took time.Duration, known int) {
		if took <= 0 {
			t.Errorf("it took %s", took)
		}
		told = append(told, fmt.Sprint(op, " ", status, " ", known))
	}
	looks := opened(t, Registry{URLs: []string{fake.URL()}, LookUpOnly: true, Observe: observe})
	if _, err := looks.ID(t.Context(), "t-value", schema); err == nil {
		t.Error("found")
	}
	r := opened(t, Registry{URLs: []string{gone.URL(), fake.URL()}, Observe: observe})
	first, again := id(t, r, "t-value"), id(t, r, "t-value")
	other := id(t, r, "u-value")
	if first != again || first == 0 || other == 0 {
		t.Errorf("ids %d, %d, %d", first, again, other)
	}
	want := []string{"lookup 404 0", "register 0 0", "register 200 1", "register 0 1", "register 200 2"}
	if !slices.Equal(told, want) {
		t.Errorf("told %q, want %q", told, want)
	}
}

// What the registry refuses is told in its words, with the way out; what may pass is another error.
func TestRegistryRefuses(t *testing.T) {
	for _, c := range []struct {
		status       int
		body         string
		refused      bool
		says, advice string
	}{
		{409, `{"error_code":409,"message":"reader union lacks type"}`, true, "reader union lacks type",
			"compatibility"},
		{422, `{"error_code":42201,"message":"no schema"}`, true, "no schema", "Set back"},
		{404, `<html>nothing here</html>`, true, "nothing here", "BRIDGE_REGISTRY_URL"},
		{404, "<html>\n<title>\nNot found\n</title>\n<p>", true, "says: a web page: Not found. A", "BRIDGE_REGISTRY_URL"},
		{502, "no answer\nof what is behind", false, "answers 502: no answer", ""},
		{404, `{"error_code":404,"message":"HTTP 404 Not Found"}`, true, "HTTP 404 Not Found", "BRIDGE_REGISTRY_URL"},
		{404, `{"error_code":40401,"message":"no subject"}`, true, "no subject", "bridge config --format schemas"},
		{401, `{"error_code":401,"message":"who are you"}`, false, "401: who are you", ""},
		{429, ``, false, "429", ""},
		{500, `{"error_code":50001,"message":"store"}`, false, "500: store", ""},
	} {
		fake := srfake.New()
		fake.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(c.status)
			_, _ = w.Write([]byte(c.body))
			return true
		})
		_, err := opened(t, Registry{URLs: []string{fake.URL()}}).ID(t.Context(), "t-value", schema)
		var refused *SchemaError
		if err == nil || errors.As(err, &refused) != c.refused || !strings.Contains(err.Error(), c.says) ||
			!strings.Contains(err.Error(), c.advice) || strings.Contains(err.Error(), "of what is behind") {
			t.Errorf("%d: %v", c.status, err)
		}
		fake.Close()
	}
}

// Of several addresses the first that answers is used: not one where nobody is, nor one that is unwell or too slow.
func TestRegistryURLs(t *testing.T) {
	gone := srfake.New()
	gone.Close()
	unwell, slow, good := srfake.New(), srfake.New(), srfake.New()
	defer unwell.Close()
	defer slow.Close()
	defer good.Close()
	asked := 0
	unwell.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
		asked++
		w.WriteHeader(http.StatusServiceUnavailable)
		return true
	})
	stop := make(chan struct{})
	defer close(stop)
	slow.Intercept(func(http.ResponseWriter, *http.Request) bool { <-stop; return true })
	r := opened(t,
		Registry{URLs: []string{gone.URL(), unwell.URL(), slow.URL(), good.URL()}, Timeout: 200 * time.Millisecond})
	if id(t, r, "t-value") == 0 || asked != 1 || !good.SubjectExists("t-value") {
		t.Errorf("asked %d times", asked)
	}
	good.Close()
	_, err := r.ID(t.Context(), "u-value", schema)
	for _, at := range r.URLs {
		if err == nil || strings.Count(err.Error(), at+"/") != 1 {
			t.Errorf("%s is not named once: %v", at, err)
		}
	}
}

// A 404 that is not a registry's says nothing about the schema: the next address is asked. It is for good only
// where all addresses answer so.
func TestRegistryURLsWithoutRegistry(t *testing.T) {
	for _, body := range []string{`<html>nothing here</html>`, `{"error_code":404,"message":"HTTP 404 Not Found"}`} {
		web, gone, good := srfake.New(), srfake.New(), srfake.New()
		defer web.Close()
		defer good.Close()
		gone.Close()
		web.Intercept(func(w http.ResponseWriter, _ *http.Request) bool {
			w.WriteHeader(http.StatusNotFound)
			_, _ = w.Write([]byte(body))
			return true
		})
		if id(t, opened(t, Registry{URLs: []string{web.URL(), good.URL()}}), "t-value") == 0 ||
			!good.SubjectExists("t-value") {
			t.Error("the second address was not asked")
		}
		var refused *SchemaError
		_, err := opened(t, Registry{URLs: []string{web.URL(), gone.URL()}}).ID(t.Context(), "t-value", schema)
		if err == nil || errors.As(err, &refused) || !strings.Contains(err.Error(), "BRIDGE_REGISTRY_URL") {
			t.Errorf("for good, and the other may come back: %v", err)
		}
		_, err = opened(t, Registry{URLs: []string{web.URL(), web.URL()}}).ID(t.Context(), "t-value", schema)
		if !errors.As(err, &refused) {
			t.Errorf("%v", err)
		}
	}
}

// Credentials are asked for each time: they may have been renewed.
func TestRegistryCredentials(t *testing.T) {
	var user, password string
	credentials := func() (string, string, error) { return user, password, nil }
	for want, set := range map[string]func(){
		"Basic bWU6c2VjcmV0": func() { user, password = "me", "secret" },
		"Bearer tok":         func() { user, password = "", "tok" },
	} {
		fake := srfake.New(srfake.WithAuth(want))
		r := opened(t, Registry{URLs: []string{fake.URL()}, Credentials: credentials})
		user, password = "me", "wrong"
		if _, err := r.ID(t.Context(), "t-value", schema); err == nil || strings.Contains(err.Error(), "wrong") {
			t.Errorf("refused: %v", err)
		}
		set()
		id(t, r, "t-value")
		fake.Close()
	}
}

// TLS, with a CA of one's own, and with a certificate of ours where the registry wants one; files that are
// replaced hold for the next connection.
func TestRegistryTLS(t *testing.T) {
	dir := t.TempDir()
	mine, other := authority(t, "mine"), authority(t, "other")
	server := httptest.NewUnstartedServer(srfake.NewRegistry().Handler())
	pair, clients := issue(t, mine, "registry", time.Hour), x509.NewCertPool()
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	clients.AppendCertsFromPEM(mine.PEM)
	server.TLS = &tls.Config{
		Certificates: []tls.Certificate{cert},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
		MinVersion:   tls.VersionTLS12,
	}
	server.StartTLS()
	defer server.Close()
	ca := filepath.Join(dir, "ca.crt")
	write(t, ca, other.PEM)
	certFile, keyFile, err := issue(t, other, "bridge", time.Hour).Write(dir, "client")
	if err != nil {
		t.Fatal(err)
	}
	urls := []string{server.URL}
	r := opened(t, Registry{URLs: urls, TLS: TLS{CAFile: ca, CertFile: certFile, KeyFile: keyFile}})
	var unknown x509.UnknownAuthorityError
	if _, err := r.ID(t.Context(), "t-value", schema); !errors.As(err, &unknown) {
		t.Errorf("an unknown registry: %v", err)
	}
	write(t, ca, mine.PEM)
	_, err = r.ID(t.Context(), "t-value", schema)
	if err == nil || !strings.Contains(err.Error(), "tls:") || !strings.Contains(err.Error(), "BRIDGE_REGISTRY_CERT_FILE") {
		t.Errorf("an unknown client: %v", err)
	}
	if _, _, err := issue(t, mine, "bridge", time.Hour).Write(dir, "client"); err != nil {
		t.Fatal(err)
	}
	id(t, r, "t-value")
	plain := httptest.NewServer(srfake.NewRegistry().Handler())
	defer plain.Close()
	for url, want := range map[string]string{
		strings.Replace(server.URL, "https:", "http:", 1): "speaks TLS on this port: begin BRIDGE_REGISTRY_URL with https://",
		strings.Replace(plain.URL, "http:", "https:", 1):  "speaks HTTP without TLS",
	} {
		other := opened(t, Registry{URLs: []string{url}, TLS: TLS{CAFile: ca}})
		if _, err := other.ID(t.Context(), "t-value", schema); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", url, err, want)
		}
	}
	none := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusNotFound)
	}))
	defer none.Close()
	_, err = opened(t, Registry{URLs: []string{none.URL}}).ID(t.Context(), "t-value", schema)
	if err == nil || !strings.Contains(err.Error(), "the registry says: 404 without a text") {
		t.Errorf("an empty answer: %v", err)
	}
	for name, files := range map[string]TLS{
		"no CA": {CertFile: certFile, KeyFile: keyFile}, "no certificate": {CAFile: ca},
	} {
		if _, err := opened(t, Registry{URLs: urls, TLS: files}).ID(t.Context(), "t-value", schema); err == nil {
			t.Errorf("%s: it works", name)
		}
	}
	for _, files := range []TLS{{CAFile: "/nowhere"}, {CAFile: keyFile}, {CertFile: certFile, KeyFile: certFile}} {
		if err := (&Registry{TLS: files}).Open(); err == nil {
			t.Errorf("%+v opens", files)
		}
	}
}
