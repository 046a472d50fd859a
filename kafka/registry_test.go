package kafka

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
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
		if _, err := looks.ID(t.Context(), subject, schema); !errors.As(err, &refused) || refused.Subject != subject || !strings.Contains(err.Error(), "BRIDGE_REGISTRY_AUTO_REGISTER") {
			t.Errorf("looked up: %v", err)
		}
		if fake.SubjectExists(subject) {
			t.Error("looking up registers")
		}
		first := id(t, opened(t, Registry{URLs: []string{fake.URL()}}), subject)
		again := id(t, opened(t, Registry{URLs: []string{fake.URL()}}), subject)
		if found := id(t, looks, subject); first == 0 || again != first || found != first || !fake.SubjectExists(subject) {
			t.Errorf("ids %d, %d, %d", first, again, found)
		}
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
		{409, `{"error_code":409,"message":"reader union lacks type"}`, true, "reader union lacks type", "compatibility"},
		{422, `{"error_code":42201,"message":"no schema"}`, true, "no schema", "Set back"},
		{404, `<html>nothing here</html>`, true, "nothing here", "BRIDGE_REGISTRY_URL"},
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
		if err == nil || errors.As(err, &refused) != c.refused || !strings.Contains(err.Error(), c.says) || !strings.Contains(err.Error(), c.advice) {
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
	r := opened(t, Registry{URLs: []string{gone.URL(), unwell.URL(), slow.URL(), good.URL()}, Timeout: 200 * time.Millisecond})
	if id(t, r, "t-value") == 0 || asked != 1 || !good.SubjectExists("t-value") {
		t.Errorf("asked %d times", asked)
	}
	good.Close()
	if _, err := r.ID(t.Context(), "u-value", schema); err == nil || strings.Count(err.Error(), "127.0.0.1") < 4 {
		t.Errorf("not all are named: %v", err)
	}
}

// Credentials are asked for each time: they may have been renewed.
func TestRegistryCredentials(t *testing.T) {
	var user, password, token string
	credentials := func() (string, string, string, error) { return user, password, token, nil }
	for want, set := range map[string]func(){
		"Basic bWU6c2VjcmV0": func() { user, password, token = "me", "secret", "" },
		"Bearer tok":         func() { user, password, token = "", "", "tok" },
	} {
		fake := srfake.New(srfake.WithAuth(want))
		r := opened(t, Registry{URLs: []string{fake.URL()}, Credentials: credentials})
		user, password, token = "me", "wrong", ""
		if _, err := r.ID(t.Context(), "t-value", schema); err == nil || strings.Contains(err.Error(), "wrong") {
			t.Errorf("refused: %v", err)
		}
		set()
		id(t, r, "t-value")
		fake.Close()
	}
}

// pemFiles writes a certificate for 127.0.0.1 that signs itself, and its key.
func pemFiles(t *testing.T) (cert, key string) {
	t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &k.PublicKey, k)
	if err != nil {
		t.Fatal(err)
	}
	keyDER, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, kind string, b []byte) string {
		name = filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(name, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return name
	}
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", keyDER)
}

// TLS, with a CA of one's own, and with a certificate of ours where the registry wants one.
func TestRegistryTLS(t *testing.T) {
	cert, key := pemFiles(t)
	pair, err := tls.LoadX509KeyPair(cert, key)
	if err != nil {
		t.Fatal(err)
	}
	ours, ourKey := pemFiles(t)
	pool := x509.NewCertPool()
	text, _ := os.ReadFile(ours)
	pool.AppendCertsFromPEM(text)
	server := httptest.NewUnstartedServer(srfake.NewRegistry().Handler())
	server.TLS = &tls.Config{Certificates: []tls.Certificate{pair}, ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: pool, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	defer server.Close()
	urls := []string{server.URL}
	id(t, opened(t, Registry{URLs: urls, CA: cert, Cert: ours, Key: ourKey}), "t-value")
	for name, r := range map[string]Registry{
		"no CA": {URLs: urls, Cert: ours, Key: ourKey}, "no certificate": {URLs: urls, CA: cert}, "another's certificate": {URLs: urls, CA: cert, Cert: cert, Key: key},
	} {
		if _, err := opened(t, r).ID(t.Context(), "t-value", schema); err == nil {
			t.Errorf("%s: it works", name)
		}
	}
	for _, r := range []Registry{{CA: "/nowhere"}, {CA: key}, {Cert: cert, Key: cert}} {
		if err := r.Open(); err == nil {
			t.Errorf("%+v opens", r)
		}
	}
}
