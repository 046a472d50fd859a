package check

import (
	"crypto/x509"
	"errors"
	"net"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"

	"blobfeed/internal/kafka"
)

// advice says what to do about an error of a connection to the brokers.
func (ck *checker) advice(err error) string {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	var invalid x509.CertificateInvalidError
	var dns *net.DNSError
	var token *kafka.TokenError
	text := err.Error()
	switch {
	case errors.As(err, &authority):
		return "name the authority that signed the brokers' certificates in BRIDGE_KAFKA_TLS_CA_FILE"
	case errors.As(err, &name):
		return "name the brokers as their certificates do, or set BRIDGE_KAFKA_TLS_SERVER_NAME"
	case errors.As(err, &invalid):
		return "the brokers' certificate is not valid (any more): renew it there"
	case errors.As(err, &token):
		return "see BRIDGE_KAFKA_SASL_TOKENS and the settings after it"
	case errors.As(err, &dns):
		return "see BRIDGE_KAFKA_BROKERS: the name is unknown"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "see BRIDGE_KAFKA_SASL_USERNAME and BRIDGE_KAFKA_SASL_PASSWORD: the brokers do not know them, " +
			"with this mechanism"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "see BRIDGE_KAFKA_SASL_MECHANISM: the brokers have others enabled on this listener"
	case strings.Contains(text, "oauth response"):
		return "the brokers reject the token: see its issuer, audience (BRIDGE_KAFKA_SASL_SCOPE) and end"
	case strings.Contains(text, "tls: ") && strings.Contains(text, "remote error"):
		return "the brokers reject our certificate: see BRIDGE_KAFKA_TLS_CERT_FILE, " +
			"and the authorities in the brokers' truststore"
	case strings.Contains(text, "plaintext connection"):
		return "the brokers speak TLS on this port: set BRIDGE_KAFKA_TLS_ENABLED=true"
	case ck.client.SASL == nil && strings.Contains(text, "is SASL missing"):
		return "the brokers want credentials on this port: set BRIDGE_KAFKA_SASL_MECHANISM; " +
			"or they speak TLS: set BRIDGE_KAFKA_TLS_ENABLED=true"
	case ck.client.TLS != nil && (strings.Contains(text, "is TLS misconfigured") || strings.HasSuffix(text, "EOF")):
		return "the port may not speak TLS: set BRIDGE_KAFKA_TLS_ENABLED=false, or use the encrypted port"
	}
	return "see the error: address, network, or another kind of port " +
		"(BRIDGE_KAFKA_BROKERS, BRIDGE_KAFKA_TLS_ENABLED, BRIDGE_KAFKA_SASL_MECHANISM)"
}
