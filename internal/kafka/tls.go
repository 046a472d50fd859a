package kafka

import (
	"bytes"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// TLS says how to verify the brokers, and how they verify the bridge. The files are read for every connection, so
// replacing them needs no restart.
type TLS struct {
	CAFile            string // PEM; only these authorities are trusted. "": the system's
	CertFile, KeyFile string // PEM, for brokers that verify clients by certificates
	ServerName        string // the name in the brokers' certificates; "": that of the address
}

// ErrEncrypted is an error of the client certificate's key.
var ErrEncrypted = errors.New("the private key is encrypted")

// Config returns the configuration of a connection, from the files as they are now.
func (t *TLS) Config() (*tls.Config, error) {
	c := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: t.ServerName}
	if t.CAFile != "" {
		pem, err := os.ReadFile(t.CAFile)
		if err != nil {
			return nil, fmt.Errorf("reading the certificates of authorities: %w", err)
		}
		c.RootCAs = x509.NewCertPool()
		if !c.RootCAs.AppendCertsFromPEM(pem) {
			return nil, fmt.Errorf("reading the certificates of authorities: %s has no certificate in PEM form",
				t.CAFile)
		}
	}
	if t.CertFile != "" {
		own, err := tls.LoadX509KeyPair(t.CertFile, t.KeyFile)
		if key, _ := os.ReadFile(t.KeyFile); err != nil && bytes.Contains(key, []byte("ENCRYPTED")) {
			err = fmt.Errorf("%s: %w: decrypt it, with openssl pkey", t.KeyFile, ErrEncrypted)
		}
		if err != nil {
			return nil, fmt.Errorf("reading the client certificate: %w", err)
		}
		c.Certificates = []tls.Certificate{own}
	}
	return c, nil
}

// Leaf returns the client certificate, nil if there is none.
func (t *TLS) Leaf() (*x509.Certificate, error) {
	c, err := t.Config()
	if err != nil || len(c.Certificates) == 0 {
		return nil, err
	}
	return c.Certificates[0].Leaf, nil
}

// expired reports whether there is a client certificate that has expired.
func (t *TLS) expired() bool {
	leaf, err := t.Leaf()
	return err == nil && leaf != nil && time.Now().After(leaf.NotAfter)
}

// dialer connects with timeout, encrypted if t is not nil.
func dialer(t *TLS, timeout time.Duration) func(context.Context, string, string) (net.Conn, error) {
	plain := &net.Dialer{Timeout: timeout}
	if t == nil {
		return plain.DialContext
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		c, err := t.Config()
		if err != nil {
			return nil, ofConnection(err)
		}
		return (&tls.Dialer{NetDialer: plain, Config: c}).DialContext(ctx, network, addr)
	}
}

// connectionError is why a connection can't be made, for a reason on our side of it. To readers of topics it is an
// error of the network: it says nothing about what they read, and passes when a file is replaced, or a server of tokens
// is back.
type connectionError struct{ error }

func (e connectionError) Unwrap() error { return e.error }

// Timeout and Temporary implement net.Error. The client asks Temporary whether to try again at once.
func (connectionError) Timeout() bool   { return false }
func (connectionError) Temporary() bool { return false }

// ofConnection marks err, unless it is nil, as an error of a connection.
func ofConnection(err error) error {
	if err == nil || errors.As(err, new(net.Error)) {
		return err
	}
	return connectionError{err}
}
