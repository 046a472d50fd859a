package config

import (
	"net"
	"net/url"
	"slices"
	"strings"

	"blobfeed/kafka"
)

// entra are the values of KAFKA_SASL_TOKENS by which tokens come from Entra ID.
var entra = []string{"default", "workload_identity", "managed_identity", "client_secret"}

// EntraTokens reports whether the tokens for Kafka come from Entra ID.
func (c *Config) EntraTokens() bool { return slices.Contains(entra, c.KafkaSASLTokens) }

// validateSecurity checks how we get into Kafka. What would have no effect is a problem: somebody believes it has.
func (c *Config) validateSecurity(bad func(name, format string, args ...any)) {
	if !c.KafkaTLSEnabled {
		for name, file := range map[string]string{"CA_FILE": c.KafkaTLSCaFile, "CERT_FILE": c.KafkaTLSCertFile, "KEY_FILE": c.KafkaTLSKeyFile} {
			if file != "" {
				bad("KAFKA_TLS_"+name, "has no effect without KAFKA_TLS_ENABLED=true")
			}
		}
	}
	if (c.KafkaTLSCertFile == "") != (c.KafkaTLSKeyFile == "") {
		bad("KAFKA_TLS_CERT_FILE", "set it together with KAFKA_TLS_KEY_FILE")
	}
	if t := (kafka.TLS{CAFile: c.KafkaTLSCaFile, CertFile: c.KafkaTLSCertFile, KeyFile: c.KafkaTLSKeyFile}); c.KafkaTLSEnabled && (t.CertFile == "") == (t.KeyFile == "") {
		if _, err := t.Config(); err != nil {
			bad("KAFKA_TLS_ENABLED", "%w", err)
		}
	}
	switch c.KafkaSASLMechanism {
	case "":
		for name, value := range map[string]string{"USERNAME": string(c.KafkaSASLUsername), "PASSWORD": string(c.KafkaSASLPassword), "TOKEN_URL": c.KafkaSASLTokenURL, "TOKEN_FILE": c.KafkaSASLTokenFile} {
			if value != "" {
				bad("KAFKA_SASL_"+name, "has no effect without KAFKA_SASL_MECHANISM")
			}
		}
	case "OAUTHBEARER":
		c.validateTokens(bad)
	default:
		if !slices.Contains(kafka.Mechanisms, c.KafkaSASLMechanism) {
			bad("KAFKA_SASL_MECHANISM", "want one of %s", strings.Join(kafka.Mechanisms, ", "))
			return
		}
		for name, value := range map[string]string{"USERNAME": string(c.KafkaSASLUsername), "PASSWORD": string(c.KafkaSASLPassword)} {
			if value == "" {
				bad("KAFKA_SASL_"+name, "required for KAFKA_SASL_MECHANISM=%s", c.KafkaSASLMechanism)
			}
		}
	}
}

func (c *Config) validateTokens(bad func(name, format string, args ...any)) {
	need := map[string]string{}
	switch {
	case c.KafkaSASLTokens == "client_credentials":
		need["TOKEN_URL"], need["CLIENT_ID"], need["CLIENT_SECRET"] = c.KafkaSASLTokenURL, c.KafkaSASLClientID, string(c.KafkaSASLClientSecret)
		// The secret is in the request.
		if u, err := url.Parse(c.KafkaSASLTokenURL); c.KafkaSASLTokenURL != "" && (err != nil || u.Scheme != "https" && !local(u.Hostname())) {
			bad("KAFKA_SASL_TOKEN_URL", "want an https URL")
		}
	case c.KafkaSASLTokens == "file":
		need["TOKEN_FILE"] = c.KafkaSASLTokenFile
	case c.EntraTokens():
		need["SCOPE"] = c.KafkaSASLScope
		if c.KafkaSASLTokens == "client_secret" {
			need["TENANT"], need["CLIENT_ID"], need["CLIENT_SECRET"] = c.KafkaSASLTenant, c.KafkaSASLClientID, string(c.KafkaSASLClientSecret)
		}
	default:
		bad("KAFKA_SASL_TOKENS", "want one of client_credentials, file, %s", strings.Join(entra, ", "))
	}
	for name, value := range need {
		if value == "" {
			bad("KAFKA_SASL_"+name, "required for KAFKA_SASL_TOKENS=%s", c.KafkaSASLTokens)
		}
	}
	for _, pair := range c.KafkaSASLExtensions {
		if name, _, ok := strings.Cut(pair, "="); !ok || name == "" || name == "auth" {
			bad("KAFKA_SASL_EXTENSIONS", "want name=value pairs, comma separated; the name auth is taken")
		}
	}
}

// local reports whether host is this machine.
func local(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Insecure says what is dangerous in how we get into Kafka, although it works.
func (c *Config) Insecure() (dangers []string) {
	if c.KafkaTLSEnabled && c.KafkaTLSInsecureSkipVerify {
		dangers = append(dangers, "the brokers' certificates are not verified: whoever is on the way can read and change everything (BRIDGE_KAFKA_TLS_INSECURE_SKIP_VERIFY)")
	}
	if !c.KafkaTLSEnabled && (c.KafkaSASLMechanism == "PLAIN" || c.KafkaSASLMechanism == "OAUTHBEARER") {
		dangers = append(dangers, "the credentials for Kafka are sent unencrypted (BRIDGE_KAFKA_TLS_ENABLED=false)")
	}
	return dangers
}
