package kafka

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/pki"
	"blobfeed/internal/testing/fakebroker"
)

// ping connects anew and asks the broker something.
func ping(t *testing.T, c *Client) error {
	t.Helper()
	c.Compression, c.Buffered = "none", 1
	opts, err := c.Options()
	if err != nil {
		t.Fatal(err)
	}
	cl, err := kgo.NewClient(append(opts, kgo.RequestRetries(0))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Second)
	defer cancel()
	return cl.Ping(ctx)
}

func authority(t *testing.T, name string) *pki.Authority {
	t.Helper()
	a, err := pki.New(name)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func issue(t *testing.T, a *pki.Authority, name string, life time.Duration) pki.Pair {
	t.Helper()
	p, err := a.Issue(name, life)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func write(t *testing.T, name string, text []byte) {
	t.Helper()
	if err := os.WriteFile(name, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

// The broker is known by its authority and name, we by our certificate; files that are replaced hold for the next
// connection.
func TestTLS(t *testing.T) {
	dir := t.TempDir()
	mine, other := authority(t, "mine"), authority(t, "other")
	server := issue(t, mine, "broker.example", time.Hour)
	cert, err := tls.X509KeyPair(server.Cert, server.Key)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AppendCertsFromPEM(mine.PEM)
	fake := fakebroker.New(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert},
		ClientAuth: tls.RequireAndVerifyClientCert, ClientCAs: clients}))
	ca := filepath.Join(dir, "ca.crt")
	write(t, ca, other.PEM)
	certFile, keyFile, err := issue(t, other, "bridge", time.Hour).Write(dir, "client")
	if err != nil {
		t.Fatal(err)
	}
	c := &Client{Brokers: fake.ListenAddrs(), TLS: &TLS{CAFile: ca, CertFile: certFile, KeyFile: keyFile}}
	var unknown x509.UnknownAuthorityError
	if err := ping(t, c); !errors.As(err, &unknown) {
		t.Errorf("an unknown broker: %v", err)
	}
	write(t, ca, mine.PEM)
	if err := ping(t, c); err == nil || !strings.Contains(err.Error(), "tls:") {
		t.Errorf("an unknown client: %v", err)
	}
	if _, _, err := issue(t, mine, "bridge", time.Hour).Write(dir, "client"); err != nil {
		t.Fatal(err)
	}
	if err := ping(t, c); err != nil {
		t.Errorf("after the rotation: %v", err)
	}
	if leaf, err := c.TLS.Leaf(); err != nil || leaf.Subject.CommonName != "bridge" {
		t.Errorf("client certificate: %v", err)
	}
	c.TLS.ServerName = "broker.example"
	if err := ping(t, c); err != nil {
		t.Errorf("by name: %v", err)
	}
	c.TLS.ServerName = "elsewhere.example"
	var name x509.HostnameError
	if err := ping(t, c); !errors.As(err, &name) {
		t.Errorf("another name: %v", err)
	}
	c.TLS.ServerName = ""
	if c.TLS.CAFile = keyFile; ping(t, c) == nil {
		t.Error("a key was taken for authorities")
	}
}

// A key with a password is named as such, of either form.
func TestEncryptedKey(t *testing.T) {
	dir := t.TempDir()
	pair := issue(t, authority(t, "mine"), "bridge", time.Hour)
	for _, key := range []string{
		"-----BEGIN ENCRYPTED PRIVATE KEY-----\nMAA=\n-----END ENCRYPTED PRIVATE KEY-----\n",
		"-----BEGIN EC PRIVATE KEY-----\nProc-Type: 4,ENCRYPTED\nDEK-Info: AES-256-CBC,00\n\nMAA=\n-----END EC PRIVATE KEY-----\n",
	} {
		pair.Key = []byte(key)
		cert, file, err := pair.Write(dir, "client")
		if err != nil {
			t.Fatal(err)
		}
		_, err = (&TLS{CertFile: cert, KeyFile: file}).Config()
		if !errors.Is(err, ErrEncrypted) || !strings.Contains(err.Error(), file) {
			t.Errorf("%.30s: %v", key, err)
		}
	}
}
