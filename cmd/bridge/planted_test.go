package main

import (
	"context"
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/config"
	"blobfeed/internal/kafka"
	"blobfeed/internal/testing/fakebroker"
)

// planted are secrets in the forms that output might have them in.
type planted []string

func (p *planted) plant(name string) string {
	secret := "planted-" + strings.ToLower(strings.ReplaceAll(name, "_", "-")) + "+/=" // escapes differ
	*p = append(*p, secret, url.QueryEscape(secret), url.PathEscape(secret),
		base64.StdEncoding.EncodeToString([]byte(secret)))
	return secret
}

// absent fails the test if text holds a secret, or does not say what shows that it came as far as it should.
func (p planted) absent(t *testing.T, what, text, says string) {
	t.Helper()
	for _, secret := range p {
		if strings.Contains(text, secret) {
			t.Errorf("%s shows %s:\n%s", what, secret, text)
		}
	}
	if !strings.Contains(text, says) {
		t.Errorf("%s does not say %q:\n%s", what, says, text)
	}
}

// plantAll plants a secret in every setting that holds one; half of them come from files. Refusing is a storage
// service, a schema registry and an OAuth server that let nobody in. The brokers of welcome let in whoever
// knows the secret, those of unkind nobody.
func plantAll(t *testing.T) (p planted, refusing, welcome, unkind string) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasPrefix(r.URL.Path, "/account") {
			w.Header().Set("X-Ms-Error-Code", "AuthenticationFailed")
			w.WriteHeader(http.StatusForbidden)
			fmt.Fprint(w, `<?xml version="1.0"?><Error><Code>AuthenticationFailed</Code><Message>no</Message></Error>`)
			return
		}
		w.WriteHeader(http.StatusUnauthorized)
		fmt.Fprint(w, `{"error_code":40101,"message":"who are you","error":"invalid_client"}`)
	}))
	t.Cleanup(server.Close)
	values := map[string]string{}
	for _, name := range config.SecretNames() {
		values[name] = p.plant(strings.TrimPrefix(name, config.Prefix+"_"))
	}
	key := base64.StdEncoding.EncodeToString([]byte("planted-key"))
	p = append(p, key)
	values["BRIDGE_SOURCE_KEY"] = key
	values["BRIDGE_SOURCE_SAS"] = "sv=2024&sp=rl&sig=" + url.QueryEscape(p.plant("SAS"))
	values["BRIDGE_SOURCE_CONNECTION_STRING"] = "DefaultEndpointsProtocol=http;AccountName=account;AccountKey=" +
		key + ";BlobEndpoint=" + server.URL + "/account;"
	dir := t.TempDir()
	for name, value := range values {
		if strings.HasPrefix(name, "BRIDGE_KAFKA_") {
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
				t.Fatal(err)
			}
			name, value = name+"_FILE", file
		}
		setenv(t, name, value)
	}
	welcoming := fakebroker.New(t, kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "bridge", values["BRIDGE_KAFKA_SASL_PASSWORD"]))
	return p, server.URL, welcoming.ListenAddrs()[0], unkindBroker(t)
}

// unkindBroker knows every mechanism and refuses everybody, as brokers do; kfake by itself would only hang up.
func unkindBroker(t *testing.T) string {
	t.Helper()
	c := fakebroker.New(t)
	c.ControlKey(int16(kmsg.SASLHandshake), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLHandshakeResponse)
		resp.SupportedMechanisms = kafka.Mechanisms
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.SASLAuthenticate), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.SASLAuthenticateResponse)
		resp.ErrorCode = kerr.SaslAuthenticationFailed.Code
		return resp, nil, true
	})
	return c.ListenAddrs()[0]
}

// callFor runs a verb that may try the same for long.
func callFor(t *testing.T, limit time.Duration, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out, errs safeBuffer // a run that has no time left does not wait for the last words of the engine
	execute(ctx, environ(t), args, &out, &errs)
	return out.String(), errs.String()
}
