package main

import (
	"crypto/x509"
	"os"
	"os/exec"
	"testing"

	"golang.org/x/crypto/x509roots/fallback/bundle"
)

// Without any certificate authority on the system, the program trusts those that sign for Azure.
func TestPublicAuthorities(t *testing.T) {
	t.Parallel()
	if os.Getenv("BRIDGE_TEST_BARE") == "" {
		empty := t.TempDir()
		cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestPublicAuthorities$")
		cmd.Env = append(os.Environ(), "BRIDGE_TEST_BARE=1", "SSL_CERT_FILE="+empty+"/none", "SSL_CERT_DIR="+empty)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Errorf("%v\n%s", err, out)
		}
		return
	}
	missing := map[string]bool{"DigiCert Global Root G2": true, "Microsoft RSA Root Certificate Authority 2017": true}
	for root := range bundle.Roots() {
		cert, err := x509.ParseCertificate(root.Certificate)
		if err != nil {
			t.Fatal(err)
		}
		if missing[cert.Subject.CommonName] {
			delete(missing, cert.Subject.CommonName)
			if _, err := cert.Verify(x509.VerifyOptions{}); err != nil {
				t.Errorf("%s: %v", cert.Subject.CommonName, err)
			}
		}
	}
	if len(missing) > 0 {
		t.Errorf("the bundle lacks %v", missing)
	}
}
