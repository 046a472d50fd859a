package main

import (
	"bytes"
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

	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/config"
)

// A secret is planted in every setting that holds one. Whatever the verbs print, on either stream, at any level, and
// however the storage service, the brokers and the OAuth server refuse: no secret is in it, in no form.
func TestSecretsStaySecret(t *testing.T) {
	var planted []string
	plant := func(name string) string {
		secret := "planted-" + strings.ToLower(strings.ReplaceAll(name, "_", "-")) + "+/=" // escapes differ
		planted = append(planted, secret, url.QueryEscape(secret), base64.StdEncoding.EncodeToString([]byte(secret)))
		return secret
	}
	storage := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Ms-Error-Code", "AuthenticationFailed")
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprintf(w, `<?xml version="1.0"?><Error><Code>AuthenticationFailed</Code><Message>no</Message></Error>`)
	}))
	defer storage.Close()
	brokers, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.EnableSASL(), kfake.Superuser("PLAIN", "other", "other"))
	if err != nil {
		t.Fatal(err)
	}
	defer brokers.Close()
	set := map[string]string{
		"SOURCE_URL": storage.URL + "/account", "SOURCE_ACCOUNT": "account", "KAFKA_BROKERS": brokers.ListenAddrs()[0], "LOG_LEVEL": "debug", "KAFKA_SASL_USERNAME": "bridge",
	}
	values := map[string]string{}
	for _, name := range config.SecretNames() {
		values[name] = plant(strings.TrimPrefix(name, "BRIDGE_"))
	}
	key := base64.StdEncoding.EncodeToString([]byte("planted-key"))
	planted = append(planted, key)
	values["BRIDGE_SOURCE_KEY"] = key
	values["BRIDGE_SOURCE_SAS"] = "sv=2024&sp=rl&sig=" + url.QueryEscape(plant("SAS"))
	values["BRIDGE_SOURCE_CONNECTION_STRING"] = "DefaultEndpointsProtocol=http;AccountName=account;AccountKey=" + key + ";BlobEndpoint=" + storage.URL + "/account;"
	dir := t.TempDir()
	for name, value := range values {
		if strings.HasPrefix(name, "BRIDGE_KAFKA_") { // half of them come from files
			file := filepath.Join(dir, name)
			if err := os.WriteFile(file, []byte(value), 0o600); err != nil {
				t.Fatal(err)
			}
			name, value = name+"_FILE", file
		}
		t.Setenv(name, value)
	}
	for name, value := range set {
		t.Setenv("BRIDGE_"+name, value)
	}
	output := 0
	for _, ways := range []map[string]string{
		{"SOURCE_AUTH": "sas", "KAFKA_SASL_MECHANISM": "PLAIN"},
		{"SOURCE_AUTH": "shared_key", "KAFKA_SASL_MECHANISM": "SCRAM-SHA-512"},
		{"SOURCE_AUTH": "connection_string", "KAFKA_SASL_MECHANISM": "OAUTHBEARER", "KAFKA_SASL_TOKEN_URL": storage.URL + "/token", "KAFKA_SASL_CLIENT_ID": "id"},
		{"SOURCE_AUTH": "client_secret", "KAFKA_SASL_MECHANISM": "nonsense"},
		{"SOURCE_URL": storage.URL + "/account?" + values["BRIDGE_SOURCE_SAS"], "KAFKA_SASL_MECHANISM": "PLAIN"},
	} {
		for name, value := range ways {
			t.Setenv("BRIDGE_"+name, value)
		}
		for _, format := range []string{"json", "text"} {
			t.Setenv("BRIDGE_LOG_FORMAT", format)
			for _, args := range []string{"config --output " + format, "check --output " + format, "dump --output " + format, "run --once", "run --help"} {
				stdout, stderr := callFor(t, time.Second, strings.Fields(args)...)
				output += len(stdout) + len(stderr)
				for _, secret := range planted {
					if strings.Contains(stdout, secret) || strings.Contains(stderr, secret) {
						t.Errorf("bridge %s, %v: shows %s:\n%s%s", args, ways, secret, stdout, stderr)
					}
				}
			}
		}
	}
	if output < 10_000 {
		t.Errorf("only %d bytes were looked at", output)
	}
}

// callFor runs a verb that may try the same for long.
func callFor(t *testing.T, limit time.Duration, args ...string) (stdout, stderr string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	var out, errs bytes.Buffer
	execute(ctx, args, &out, &errs)
	return out.String(), errs.String()
}
