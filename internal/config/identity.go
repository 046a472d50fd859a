package config

import (
	"cmp"
	"os"
)

// Identity is the identity at Entra ID that the standard variables of Azure's SDKs describe.
type Identity struct {
	Tenant, ClientID string
	TokenFile        string // the federated token, for workload_identity
	Authority        string // of another cloud; "": the public one
}

// Identity returns the identity for the account.
func (c *Config) Identity() Identity {
	return Identity{Tenant: os.Getenv(tenant), ClientID: os.Getenv(client),
		TokenFile: os.Getenv("AZURE_FEDERATED_TOKEN_FILE"), Authority: os.Getenv("AZURE_AUTHORITY_HOST")}
}

// KafkaIdentity returns the identity of which the tokens for Kafka are.
func (c *Config) KafkaIdentity() Identity {
	i := c.Identity()
	i.ClientID = cmp.Or(string(c.KafkaSASLUsername), i.ClientID)
	return i
}

const (
	tenant = "AZURE_TENANT_ID"
	client = "AZURE_CLIENT_ID"
)
