package config

import (
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strings"

	"blobfeed/internal/storageaccount"
)

// entra are the values of KAFKA_SASL_TOKENS by which tokens come from Entra ID.
var entra = []string{"default", "workload_identity", "managed_identity", "client_secret"}

// EntraTokens reports whether the tokens for Kafka come from Entra ID.
func (c *Config) EntraTokens() bool { return slices.Contains(entra, c.KafkaSASLTokens) }

// validateSecurity checks the access to Kafka, and that credentials for the registry stay private.
func (c *Config) validateSecurity(p *problems) {
	for _, host := range c.clearRegistries() {
		if !local(host) {
			p.add("REGISTRY_URL", "the credentials for the registry would be sent to %s unencrypted: use https", host)
		}
	}
	if !c.KafkaTLSEnabled {
		p.idle(variable("KAFKA_TLS_ENABLED=true"), "KAFKA_TLS_CA_FILE", c.KafkaTLSCaFile,
			"KAFKA_TLS_CERT_FILE", c.KafkaTLSCertFile, "KAFKA_TLS_KEY_FILE", c.KafkaTLSKeyFile,
			"KAFKA_TLS_SERVER_NAME", c.KafkaTLSServerName)
	}
	if (c.KafkaTLSCertFile == "") != (c.KafkaTLSKeyFile == "") {
		p.add("KAFKA_TLS_CERT_FILE", "set it together with KAFKA_TLS_KEY_FILE")
	}
	switch c.KafkaSASLMechanism {
	case "":
		p.idle(variable("KAFKA_SASL_MECHANISM"), append(c.saslPair(),
			"KAFKA_SASL_TOKENS", c.KafkaSASLTokens, "KAFKA_SASL_SCOPE", c.KafkaSASLScope,
			"KAFKA_SASL_EXTENSIONS", strings.Join(c.KafkaSASLExtensions, ","))...)
	case "OAUTHBEARER":
		c.validateTokens(p)
	case "PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512":
		p.required(variable("KAFKA_SASL_MECHANISM=")+c.KafkaSASLMechanism, c.saslPair()...)
	}
}

// saslPair returns the credentials for Kafka by the names of their settings.
func (c *Config) saslPair() []string {
	return []string{"KAFKA_SASL_USERNAME", string(c.KafkaSASLUsername),
		"KAFKA_SASL_PASSWORD", string(c.KafkaSASLPassword)}
}

// TokenFile returns the file with the token for Kafka; "" if tokens come from elsewhere.
func (c *Config) TokenFile() string {
	path, ok := strings.CutPrefix(c.KafkaSASLTokens, "file://")
	if !ok {
		return ""
	}
	return path
}

func (c *Config) validateTokens(p *problems) {
	credentials := c.saslPair()
	u, err := url.Parse(c.KafkaSASLTokens)
	switch from := variable("KAFKA_SASL_TOKENS=") + c.KafkaSASLTokens; {
	case c.KafkaSASLTokens == "":
		p.required(variable("KAFKA_SASL_MECHANISM=OAUTHBEARER"), "KAFKA_SASL_TOKENS", "")
	case c.EntraTokens():
		p.required(from, "KAFKA_SASL_SCOPE", c.KafkaSASLScope)
		if c.KafkaSASLTokens == "client_secret" {
			credentials[1] = c.KafkaIdentity().ClientID
			p.required(from, credentials...)
			if c.Identity().Tenant == "" {
				p.add("KAFKA_SASL_TOKENS", "client_secret needs the variable %s", tenant)
			}
		}
	case err == nil && u.Scheme == "file" && u.Host == "" && filepath.IsAbs(u.Path):
	// The secret is in the request.
	case err == nil && u.Host != "" && u.User == nil &&
		(u.Scheme == "https" || u.Scheme == "http" && local(u.Hostname())):
		p.required("the OAuth server of "+variable("KAFKA_SASL_TOKENS"), credentials...)
	default:
		p.add("KAFKA_SASL_TOKENS",
			"want https://<token endpoint> without a user, file:///<absolute path>, or one of %s",
			strings.Join(entra, ", "))
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

// Insecure returns what is dangerous in the access to Kafka, the account and the registry, although it works.
func (c *Config) Insecure() (dangers []string) {
	switch remote := slices.ContainsFunc(c.KafkaBrokers, remoteBroker); {
	case c.KafkaTLSEnabled:
	case c.KafkaSASLMechanism == "PLAIN", c.KafkaSASLMechanism == "OAUTHBEARER":
		dangers = append(dangers, "the credentials for Kafka are sent unencrypted: set BRIDGE_KAFKA_TLS_ENABLED=true")
	case strings.HasPrefix(c.KafkaSASLMechanism, "SCRAM"):
		dangers = append(dangers, "Kafka is reached unencrypted: the password can be guessed from what is sent, "+
			"and the connection taken over; set BRIDGE_KAFKA_TLS_ENABLED=true")
	case remote:
		dangers = append(dangers, "Kafka is reached unencrypted: anybody on the network path can read and change "+
			"everything; set BRIDGE_KAFKA_TLS_ENABLED=true")
	}
	if len(c.clearRegistries()) > 0 {
		dangers = append(dangers,
			"the credentials for the schema registry are sent unencrypted: use https in BRIDGE_REGISTRY_URL")
	}
	if c.clearSignature() {
		dangers = append(dangers, "the shared access signature is sent unencrypted: use https for the storage service")
	}
	if strings.HasPrefix(c.KafkaSASLTokens, "http://") {
		dangers = append(dangers, "the client secret is sent unencrypted: use https in BRIDGE_KAFKA_SASL_TOKENS")
	}
	return dangers
}

func remoteBroker(broker string) bool {
	host, _, err := net.SplitHostPort(broker)
	return err != nil || !local(host)
}

// clearRegistries returns the hosts that get the registry's credentials over http.
func (c *Config) clearRegistries() (hosts []string) {
	if c.RegistryPassword == "" {
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
		text := string(c.SourceConnectionString)
		endpoint := strings.ToLower(storageaccount.Part(text, "BlobEndpoint"))
		return storageaccount.Part(text, "SharedAccessSignature") != "" && strings.HasPrefix(endpoint, "http://")
	}
	return false
}
