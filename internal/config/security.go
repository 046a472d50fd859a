package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"blobfeed/internal/kafka"
)

// entra are the values of KAFKA_SASL_TOKENS by which tokens come from Entra ID.
var entra = []string{"default", "workload_identity", "managed_identity", "client_secret"}

// EntraTokens reports whether the tokens for Kafka come from Entra ID.
func (c *Config) EntraTokens() bool { return slices.Contains(entra, c.KafkaSASLTokens) }

// validateSecurity checks how we get into Kafka, and that credentials for the registry stay private.
func (c *Config) validateSecurity(p *problems) {
	for _, host := range c.clearRegistries() {
		if !local(host) {
			p.add("REGISTRY_URL", "the credentials for the registry would be sent to %s unencrypted: use https", host)
		}
	}
	if !c.KafkaTLSEnabled {
		p.idle("KAFKA_TLS_ENABLED=true", "KAFKA_TLS_CA_FILE", c.KafkaTLSCaFile, "KAFKA_TLS_CERT_FILE", c.KafkaTLSCertFile,
			"KAFKA_TLS_KEY_FILE", c.KafkaTLSKeyFile, "KAFKA_TLS_SERVER_NAME", c.KafkaTLSServerName)
	}
	if (c.KafkaTLSCertFile == "") != (c.KafkaTLSKeyFile == "") {
		p.add("KAFKA_TLS_CERT_FILE", "set it together with KAFKA_TLS_KEY_FILE")
	}
	if t := (kafka.TLS{CAFile: c.KafkaTLSCaFile, CertFile: c.KafkaTLSCertFile, KeyFile: c.KafkaTLSKeyFile}); c.KafkaTLSEnabled && (t.CertFile == "") == (t.KeyFile == "") {
		if _, err := t.Config(); err != nil {
			p.add("KAFKA_TLS_ENABLED", "%w", err)
		}
	}
	password := []string{"KAFKA_SASL_USERNAME", string(c.KafkaSASLUsername), "KAFKA_SASL_PASSWORD", string(c.KafkaSASLPassword)}
	switch c.KafkaSASLMechanism {
	case "":
		p.idle("KAFKA_SASL_MECHANISM", append(password, "KAFKA_SASL_TOKEN_URL", c.KafkaSASLTokenURL, "KAFKA_SASL_TOKEN_FILE", c.KafkaSASLTokenFile,
			"KAFKA_SASL_CLIENT_ID", c.KafkaSASLClientID, "KAFKA_SASL_CLIENT_SECRET", string(c.KafkaSASLClientSecret), "KAFKA_SASL_TENANT", c.KafkaSASLTenant,
			"KAFKA_SASL_SCOPE", c.KafkaSASLScope, "KAFKA_SASL_EXTENSIONS", strings.Join(c.KafkaSASLExtensions, ","))...)
	case "OAUTHBEARER":
		c.validateTokens(p)
	default:
		if !slices.Contains(kafka.Mechanisms, c.KafkaSASLMechanism) {
			p.add("KAFKA_SASL_MECHANISM", "want one of %s", strings.Join(kafka.Mechanisms, ", "))
			return
		}
		p.required("KAFKA_SASL_MECHANISM="+c.KafkaSASLMechanism, password...)
	}
}

func (c *Config) validateTokens(p *problems) {
	from := "KAFKA_SASL_TOKENS=" + c.KafkaSASLTokens
	client := []string{"KAFKA_SASL_CLIENT_ID", c.KafkaSASLClientID, "KAFKA_SASL_CLIENT_SECRET", string(c.KafkaSASLClientSecret)}
	switch {
	case c.KafkaSASLTokens == "client_credentials":
		p.required(from, append(client, "KAFKA_SASL_TOKEN_URL", c.KafkaSASLTokenURL)...)
		// The secret is in the request.
		if u, err := url.Parse(c.KafkaSASLTokenURL); c.KafkaSASLTokenURL != "" && (err != nil || u.Scheme != "https" && !local(u.Hostname()) || u.User != nil) {
			p.add("KAFKA_SASL_TOKEN_URL", "want an https URL, without a user")
		}
	case c.KafkaSASLTokens == "file":
		p.required(from, "KAFKA_SASL_TOKEN_FILE", c.KafkaSASLTokenFile)
	case c.EntraTokens():
		p.required(from, "KAFKA_SASL_SCOPE", c.KafkaSASLScope)
		if c.KafkaSASLTokens == "client_secret" {
			p.required(from, append(client, "KAFKA_SASL_TENANT", c.KafkaSASLTenant)...)
		}
	default:
		p.oneOf("KAFKA_SASL_TOKENS", c.KafkaSASLTokens, append([]string{"client_credentials", "file"}, entra...)...)
	}
	for _, pair := range c.KafkaSASLExtensions {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" || name == "auth" {
			p.add("KAFKA_SASL_EXTENSIONS", "want name=value pairs, comma separated; the name auth is taken")
		}
	}
}

// local reports whether host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Insecure says what is dangerous in how we get into Kafka, the account and the registry, although it works.
func (c *Config) Insecure() (dangers []string) {
	if c.KafkaTLSEnabled && c.KafkaTLSInsecureSkipVerify {
		dangers = append(dangers, "the brokers' certificates are not verified: whoever is on the way can read and change everything (BRIDGE_KAFKA_TLS_INSECURE_SKIP_VERIFY)")
	}
	switch remote := slices.ContainsFunc(c.KafkaBrokers, remoteBroker); {
	case c.KafkaTLSEnabled:
	case c.KafkaSASLMechanism == "PLAIN", c.KafkaSASLMechanism == "OAUTHBEARER":
		dangers = append(dangers, "the credentials for Kafka are sent unencrypted: set BRIDGE_KAFKA_TLS_ENABLED=true")
	case strings.HasPrefix(c.KafkaSASLMechanism, "SCRAM"):
		dangers = append(dangers, "Kafka is reached unencrypted: the password can be guessed from what is sent, "+
			"and the connection taken over; set BRIDGE_KAFKA_TLS_ENABLED=true")
	case remote:
		dangers = append(dangers, "Kafka is reached unencrypted: whoever is on the way can read and change everything; "+
			"set BRIDGE_KAFKA_TLS_ENABLED=true")
	}
	if len(c.clearRegistries()) > 0 {
		dangers = append(dangers,
			"the credentials for the schema registry are sent unencrypted: use https in BRIDGE_REGISTRY_URL")
	}
	if c.clearSignature() {
		dangers = append(dangers, "the shared access signature is sent unencrypted: use https for the storage service")
	}
	if u, err := url.Parse(c.KafkaSASLTokenURL); err == nil && u.Scheme == "http" {
		dangers = append(dangers, "the client secret is sent unencrypted: use https in BRIDGE_KAFKA_SASL_TOKEN_URL")
	}
	return dangers
}

func remoteBroker(broker string) bool {
	host, _, err := net.SplitHostPort(broker)
	return err != nil || !local(host)
}

// clearRegistries returns the hosts that get the registry's credentials over http.
func (c *Config) clearRegistries() (hosts []string) {
	if c.RegistryUsername == "" && c.RegistryPassword == "" && c.RegistryToken == "" {
		return nil
	}
	for _, text := range c.RegistryURL {
		if u, err := url.Parse(text); err == nil && u.Scheme == "http" {
			hosts = append(hosts, u.Hostname())
		}
	}
	return hosts
}

// clearSignature reports whether a shared access signature is sent over http; package azure refuses it but to this
// machine.
func (c *Config) clearSignature() bool {
	switch c.SourceAuth {
	case "sas":
		return strings.HasPrefix(strings.ToLower(c.SourceURL), "http://")
	case "connection_string":
		text := strings.ToLower(string(c.SourceConnectionString))
		return strings.Contains(text, "sharedaccesssignature=") && strings.Contains(text, "blobendpoint=http://")
	}
	return false
}
