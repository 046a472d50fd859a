package config

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// What would not work, or have no effect, is refused by the name of its variable.
func TestSecurityProblems(t *testing.T) {
	none := filepath.Join(t.TempDir(), "none.pem")
	for _, tc := range []struct {
		env   map[string]string
		names []string
	}{
		{map[string]string{"TLS_CA_FILE": none}, []string{"TLS_CA_FILE"}},
		{map[string]string{"TLS_ENABLED": "true", "TLS_CERT_FILE": none}, []string{"TLS_CERT_FILE"}},
		{map[string]string{"TLS_SERVER_NAME": "kafka"}, []string{"TLS_SERVER_NAME"}},
		{map[string]string{"SASL_PASSWORD": "x"}, []string{"SASL_PASSWORD"}},
		{map[string]string{"SASL_PASSWORD": "x", "SASL_EXTENSIONS": "a=b"}, []string{"SASL_PASSWORD", "SASL_EXTENSIONS"}},
		{map[string]string{"SASL_MECHANISM": "OAUTHBEARER", "SASL_TOKENS": "https://id:pw@idp.example/token", "SASL_USERNAME": "id", "SASL_PASSWORD": "pw"}, []string{"SASL_TOKENS"}},
		{map[string]string{"SASL_MECHANISM": "GSSAPI"}, []string{"SASL_MECHANISM"}},
		{map[string]string{"SASL_MECHANISM": "PLAIN"}, []string{"SASL_USERNAME", "SASL_PASSWORD"}},
		{map[string]string{"SASL_MECHANISM": "OAUTHBEARER"}, []string{"SASL_TOKENS"}},
		{map[string]string{"SASL_MECHANISM": "OAUTHBEARER", "SASL_TOKENS": "https://idp.example/token"}, []string{"SASL_USERNAME", "SASL_PASSWORD"}},
		{map[string]string{"SASL_MECHANISM": "OAUTHBEARER", "SASL_TOKENS": "http://idp.example/token"}, []string{"SASL_TOKENS"}},
		{map[string]string{"SASL_MECHANISM": "OAUTHBEARER", "SASL_TOKENS": "file://token"}, []string{"SASL_TOKENS"}},
		{map[string]string{"SASL_MECHANISM": "OAUTHBEARER", "SASL_TOKENS": "default"}, []string{"SASL_SCOPE"}},
		{map[string]string{"SASL_MECHANISM": "OAUTHBEARER", "SASL_TOKENS": "client_secret"}, []string{"SASL_SCOPE", "SASL_TOKENS", "SASL_USERNAME", "SASL_PASSWORD"}},
		{map[string]string{"SASL_MECHANISM": "OAUTHBEARER", "SASL_TOKENS": "wallet"}, []string{"SASL_TOKENS"}},
		{map[string]string{"SASL_MECHANISM": "OAUTHBEARER", "SASL_TOKENS": "file://" + none, "SASL_EXTENSIONS": "a=b,c"}, []string{"SASL_EXTENSIONS"}},
		{map[string]string{"SASL_MECHANISM": "OAUTHBEARER", "SASL_TOKENS": "file://" + none, "SASL_EXTENSIONS": "a=b"}, nil},
		{map[string]string{"SASL_MECHANISM": "SCRAM-SHA-512", "SASL_USERNAME": "u", "SASL_PASSWORD": "p"}, nil},
		{map[string]string{"PRESET": "msk"}, []string{"PRESET"}},
	} {
		env := map[string]string{"BRIDGE_SOURCE_URL": "file:///feed", "BRIDGE_KAFKA_BROKERS": "a:1"}
		for name, value := range tc.env {
			env["BRIDGE_KAFKA_"+name] = value
		}
		set(t, env)
		_, err := Environ().Load(true)
		var problems []string
		if err != nil {
			problems = strings.Split(err.Error(), "\n")
		}
		if len(problems) != len(tc.names) {
			t.Errorf("%v: %v", tc.env, err)
			continue
		}
		for _, name := range tc.names {
			if !strings.Contains(err.Error(), "BRIDGE_KAFKA_"+name+": ") {
				t.Errorf("%v: %s is not named in %v", tc.env, name, err)
			}
		}
	}
}

// A preset changes defaults, and nothing that is set.
func TestPresets(t *testing.T) {
	base := map[string]string{
		"BRIDGE_SOURCE_URL":    "file:///feed",
		"BRIDGE_KAFKA_BROKERS": "ns.servicebus.windows.net",
		"BRIDGE_PRESET":        "event_hubs",
	}
	set(t, base)
	c, err := Environ().Load(true)
	if err != nil {
		t.Fatal(err)
	}
	if !c.KafkaTLSEnabled || c.KafkaBrokers[0] != "ns.servicebus.windows.net:9093" || c.KafkaSASLMechanism != "OAUTHBEARER" || c.KafkaSASLTokens != "default" ||
		c.KafkaSASLScope != "https://ns.servicebus.windows.net/.default" ||
		c.KafkaCompression != "none" ||
		len(c.Insecure()) > 0 {
		t.Errorf("%+v", c)
	}
	base["BRIDGE_KAFKA_SASL_PASSWORD"], base["BRIDGE_KAFKA_COMPRESSION"], base["BRIDGE_KAFKA_TLS_ENABLED"] = "Endpoint=sb://ns", "gzip", "false"
	set(t, base)
	if c, err = Environ().Load(true); err != nil {
		t.Fatal(err)
	}
	if c.KafkaTLSEnabled || c.KafkaSASLMechanism != "PLAIN" || c.KafkaSASLUsername != "$ConnectionString" ||
		c.KafkaCompression != "gzip" ||
		len(c.Insecure()) != 1 {
		t.Errorf("%+v", c)
	}
	set(
		t,
		map[string]string{
			"BRIDGE_SOURCE_URL":          "file:///feed",
			"BRIDGE_KAFKA_BROKERS":       "x:9092",
			"BRIDGE_PRESET":              "confluent_cloud",
			"BRIDGE_KAFKA_SASL_USERNAME": "key",
			"BRIDGE_KAFKA_SASL_PASSWORD": "secret",
		},
	)
	if c, err = Environ().Load(true); err != nil || !c.KafkaTLSEnabled || c.KafkaSASLMechanism != "PLAIN" ||
		c.KafkaCompression != "snappy" {
		t.Errorf("%+v, %v", c, err)
	}
}

// Every setting is shown with where it comes from; secrets are not.
func TestEffective(t *testing.T) {
	file := filepath.Join(t.TempDir(), "key")
	if err := os.WriteFile(file, []byte("hunter2"), 0o600); err != nil {
		t.Fatal(err)
	}
	set(
		t,
		map[string]string{
			"BRIDGE_SOURCE_URL":      "https://user:hunter2@host/path?sig=hunter2",
			"BRIDGE_SOURCE_KEY_FILE": file,
			"BRIDGE_SOURCE_SAS":      "hunter2",
			"BRIDGE_SOURCE_AUTH":     "sas",
			"BRIDGE_PRESET":          "event_hubs",
			"BRIDGE_CONTAINERS":      "a,b",
		},
	)
	c, err := Environ().Load(false)
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]Effective{}
	for _, e := range c.Effective() {
		have[e.Name] = e
		if strings.Contains(e.Value, "hunter2") {
			t.Errorf("%+v", e)
		}
	}
	for _, want := range []Effective{
		{"BRIDGE_SOURCE_URL", "https://(hidden)@host/path?(hidden)", "environment"}, {"BRIDGE_SOURCE_KEY", "(set)", "file " + file}, {"BRIDGE_SOURCE_SAS", "(set)", "environment"},
		{"BRIDGE_SOURCE_CLIENT_SECRET", "", "default"}, {"BRIDGE_KAFKA_TLS_ENABLED", "true", "preset event_hubs"}, {"BRIDGE_CONTAINERS", "a,b", "environment"},
		{"BRIDGE_COMMIT_INTERVAL", "1s", "default"},
	} {
		if have[want.Name] != want {
			t.Errorf("%+v, want %+v", have[want.Name], want)
		}
	}
}

// What is pasted into a setting that is shown is hidden, and nothing else is.
func TestRedact(t *testing.T) {
	for _, c := range []struct{ name, value, want string }{
		{"SOURCE_URL", "https://account.blob.core.windows.net", "https://account.blob.core.windows.net"},
		{"SOURCE_URL", "file:///feeds/a@b", "file:///feeds/a@b"},
		{"SOURCE_URL", "https://user:a/b@c@host/path", "https://(hidden)@host/path"},
		{"SOURCE_URL", "user:secret@host", "(hidden)@host"},
		{"SOURCE_URL", "https://host/path?sv=1&sig=x", "https://host/path?(hidden)"},
		{"SOURCE_URL", "BlobEndpoint=https://host/;SharedAccessSignature=sv=1&sig=x", "(hidden)"},
		{"SOURCE_AUTH", "AccountName=a;AccountKey=x==", "(hidden)"},
		{"SOURCE_ACCOUNT", "sv=1&sig=x", "(hidden)"},
		{"KAFKA_SASL_TOKENS", "https://user:x@host/token", "https://(hidden)@host/token"},
		{"KAFKA_SASL_TOKENS", "eyJhbGciOiJub25lIn0.e30.", "(hidden)"},
		{"KAFKA_SASL_TOKENS", "managed_identity", "managed_identity"},
		{"KAFKA_BROKERS", "user:x@host:9092", "(hidden)@host:9092"},
		{"KAFKA_SASL_USERNAME", "user@domain", "user@domain"},
		{"PREFIXES", "c/key=2024/a?b@c", "c/key=2024/a?b@c"},
	} {
		if got := redact(c.name, c.value); got != c.want {
			t.Errorf("%s=%s: %s, want %s", c.name, c.value, got, c.want)
		}
	}
}
