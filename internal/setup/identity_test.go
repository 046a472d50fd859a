package setup

import (
	"strings"
	"testing"

	"blobfeed/internal/config"
)

// Identities at Entra ID come from the standard variables; Kafka's may be another one.
func TestIdentity(t *testing.T) {
	for _, name := range []string{"TENANT_ID", "CLIENT_ID", "FEDERATED_TOKEN_FILE", "AUTHORITY_HOST"} {
		t.Setenv("AZURE_"+name, "")
	}
	setVariables(t, map[string]string{"BRIDGE_SOURCE_URL": "https://account.blob.core.windows.net",
		"BRIDGE_SOURCE_AUTH": "client_secret", "BRIDGE_SOURCE_CLIENT_SECRET": "hunter2",
		"BRIDGE_KAFKA_SASL_USERNAME": "kafka", "BRIDGE_KAFKA_SASL_MECHANISM": "OAUTHBEARER",
		"BRIDGE_KAFKA_SASL_TOKENS": "managed_identity", "BRIDGE_KAFKA_SASL_SCOPE": "scope",
		"BRIDGE_KAFKA_BROKERS": "a:1"})
	const want = "BRIDGE_SOURCE_AUTH: client_secret needs the variables AZURE_TENANT_ID and AZURE_CLIENT_ID"
	if _, err := config.Environ().Load(true); err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("without an identity: %v", err)
	}
	for name, value := range map[string]string{"TENANT_ID": "tenant", "CLIENT_ID": "app",
		"FEDERATED_TOKEN_FILE": "/token",
		"AUTHORITY_HOST":       "https://login.example.us"} {
		t.Setenv("AZURE_"+name, value)
	}
	c, err := config.Environ().Load(true)
	if err != nil {
		t.Fatal(err)
	}
	if a := Azure(c); a.Tenant != "tenant" || a.ClientID != "app" || a.TokenFile != "/token" ||
		a.Authority != "https://login.example.us" || a.ClientSecret != "hunter2" {
		t.Errorf("the account's is %+v", a)
	}
	if i := c.KafkaIdentity(); i.ClientID != "kafka" || i.Tenant != "tenant" {
		t.Errorf("Kafka's is %+v", i)
	}
}
