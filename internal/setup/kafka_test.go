package setup

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"testing"

	"blobfeed/internal/config"
)

// Kafka's tokens come from where the settings say, and follow their file.
func TestKafkaTokens(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "secret")
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("first")
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, secret, _ := r.BasicAuth()
		_, _ = w.Write([]byte(`{"access_token":"token for ` + secret + `","expires_in":0}`))
	}))
	defer server.Close()
	for name, value := range map[string]string{"SOURCE_URL": "file:///feed", "KAFKA_BROKERS": "k:9092", "KAFKA_TLS_ENABLED": "true", "KAFKA_SASL_MECHANISM": "OAUTHBEARER",
		"KAFKA_SASL_TOKENS": server.URL, "KAFKA_SASL_USERNAME": "id", "KAFKA_SASL_PASSWORD_FILE": file, "KAFKA_SASL_EXTENSIONS": "logicalCluster=lkc-1,identityPoolId=pool=1"} {
		t.Setenv("BRIDGE_"+name, value)
	}
	c, err := config.Environ().Load(true)
	if err != nil {
		t.Fatal(err)
	}
	k, err := Kafka(c, "x", 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, secret := range []string{"first", "second"} {
		write(secret)
		if got, err := k.SASL.Token(t.Context()); err != nil || got != "token for "+secret {
			t.Errorf("%q, %v", got, err)
		}
	}
	if x := k.SASL.Extensions; len(x) != 2 || x["logicalCluster"] != "lkc-1" || x["identityPoolId"] != "pool=1" {
		t.Errorf("extensions %v", x)
	}
}

// A credential of Entra ID is kept while its files stay, and made again when one of them is replaced.
func TestEntraSecretRotates(t *testing.T) {
	user, file := filepath.Join(t.TempDir(), "user"), filepath.Join(t.TempDir(), "secret")
	for name, value := range map[string]string{"SOURCE_URL": "file:///feed", "KAFKA_BROKERS": "ns.servicebus.windows.net", "PRESET": "event_hubs",
		"KAFKA_SASL_TOKENS": "client_secret", "KAFKA_SASL_USERNAME_FILE": user, "KAFKA_SASL_PASSWORD_FILE": file} {
		t.Setenv("BRIDGE_"+name, value)
	}
	t.Setenv("AZURE_TENANT_ID", "tenant")
	rotate := func(file, text string) {
		t.Helper()
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	rotate(user, "id")
	rotate(file, "first")
	c, err := config.Environ().Load(true)
	if err != nil {
		t.Fatal(err)
	}
	e := &entra{config: c}
	first, err := e.credential()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := e.credential(); err != nil || again != first {
		t.Errorf("made anew without need: %v", err)
	}
	if k, err := Kafka(c, "x", 1); err != nil || k.SASL.Mechanism != "OAUTHBEARER" {
		t.Errorf("a secret of a client is taken for a connection string: %+v, %v", k.SASL, err)
	}
	rotate(file, "second")
	second, err := e.credential()
	if err != nil || second == first {
		t.Errorf("not made anew: %v", err)
	}
	rotate(user, "another")
	if third, err := e.credential(); err != nil || third == second {
		t.Errorf("not made again for another user: %v", err)
	}
}
