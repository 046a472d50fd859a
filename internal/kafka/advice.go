package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/internal/outbound"
)

// Advice says what to do about an error of the brokers, or of a connection to them. It returns "" if it does not know.
func (c *Client) Advice(err error) string {
	unknown := errors.As(err, new(x509.UnknownAuthorityError))
	var dial *net.OpError
	text := err.Error()
	switch {
	case errors.As(err, new(*TokenError)):
		return "check BRIDGE_KAFKA_SASL_TOKENS and the settings after it"
	case errors.As(err, new(*url.Error)): // of the storage service or the registry
		return ""
	case unknown && c.TLS != nil && c.TLS.CAFile != "":
		return "BRIDGE_KAFKA_TLS_CA_FILE lacks the authority that signed the brokers' certificates: add it"
	case unknown:
		return "name the authority that signed the brokers' certificates in BRIDGE_KAFKA_TLS_CA_FILE"
	case errors.As(err, new(x509.HostnameError)):
		return "name the brokers as their certificates do, or set BRIDGE_KAFKA_TLS_SERVER_NAME"
	case errors.As(err, new(x509.CertificateInvalidError)):
		return "the brokers' certificate is not valid (any more): renew it there"
	case errors.As(err, new(*net.DNSError)):
		return "correct the name in BRIDGE_KAFKA_BROKERS, or the DNS of this machine, which does not know it"
	case errors.Is(err, kerr.SaslAuthenticationFailed):
		return "correct BRIDGE_KAFKA_SASL_USERNAME and BRIDGE_KAFKA_SASL_PASSWORD: the brokers do not accept them " +
			"with this mechanism"
	case errors.Is(err, kerr.UnsupportedSaslMechanism):
		return "set BRIDGE_KAFKA_SASL_MECHANISM to one that the brokers have on this listener " +
			"(sasl.enabled.mechanisms)"
	case errors.Is(err, kerr.IllegalSaslState):
		return "the port takes no credentials: leave BRIDGE_KAFKA_SASL_MECHANISM out, or use the port that takes them"
	case strings.Contains(text, "oauth response"):
		return "the brokers reject the token: check its issuer, audience (BRIDGE_KAFKA_SASL_SCOPE) and end"
	case rejected(text) && c.TLS != nil && c.TLS.expired():
		return "the client certificate in BRIDGE_KAFKA_TLS_CERT_FILE has expired: replace its file"
	case rejected(text):
		return "the brokers reject our certificate: set BRIDGE_KAFKA_TLS_CERT_FILE to one of an authority in their " +
			"truststore"
	case strings.Contains(text, "plaintext connection"), c.TLS == nil && strings.Contains(text, "is TLS missing"):
		return "the brokers speak TLS on this port: set BRIDGE_KAFKA_TLS_ENABLED=true"
	case c.SASL == nil && c.TLS != nil && strings.Contains(text, "is SASL missing"):
		return "the brokers want credentials on this port: set BRIDGE_KAFKA_SASL_MECHANISM"
	case c.SASL == nil && strings.Contains(text, "is SASL missing"):
		return "the brokers want credentials on this port: set BRIDGE_KAFKA_SASL_MECHANISM; " +
			"or they speak TLS: set BRIDGE_KAFKA_TLS_ENABLED=true"
	case c.TLS != nil && (strings.Contains(text, "is TLS misconfigured") || strings.HasSuffix(text, "EOF") ||
		strings.HasSuffix(text, "read: connection reset by peer")):
		return "the port may not speak TLS: set BRIDGE_KAFKA_TLS_ENABLED=false, or use the encrypted port"
	case Denied(err):
		return "run bridge check, which prints the commands that grant what is missing"
	case errors.Is(err, kerr.InvalidReplicationFactor):
		return "set BRIDGE_TOPIC_REPLICATION to at most the number of brokers, or create the topic yourself"
	case errors.Is(err, kerr.InvalidPartitions), errors.Is(err, kerr.InvalidConfig),
		errors.Is(err, kerr.PolicyViolation):
		return "set BRIDGE_TOPIC_PARTITIONS and BRIDGE_TOPIC_REPLICATION to what the brokers allow, or create the " +
			"topic yourself"
	case errors.Is(err, kerr.InvalidTxnState):
		return "raise BRIDGE_TXN_TIMEOUT if transactions take longer; runbook: BridgeTransactionsSlow in " +
			"docs/operations.md"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "start the brokers, or set BRIDGE_KAFKA_BROKERS to their addresses"
	case dial != nil && dial.Timeout() && c.listens(dial.Addr):
		return Silent
	case strings.Contains(text, "beginning of an HTTP response"):
		return "an HTTP server has this port: set BRIDGE_KAFKA_BROKERS to the port of the brokers"
	case strings.Contains(text, "response size"): // it takes other bytes, such as a page without a status line, for one
		return "the port does not answer as Kafka does (does it speak HTTP or TLS?): check BRIDGE_KAFKA_BROKERS and " +
			"BRIDGE_KAFKA_TLS_ENABLED"
	case strings.Contains(text, "the brokers did not answer in time"): // the engine, and status.ErrSilent
		return Silent
	}
	return ""
}

// Denied reports whether the brokers do not permit something.
func Denied(err error) bool {
	return errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.GroupAuthorizationFailed) ||
		errors.Is(err, kerr.TransactionalIDAuthorizationFailed) || errors.Is(err, kerr.ClusterAuthorizationFailed)
}

// Silent is what to do about brokers that do not answer in time.
const Silent = "look at the brokers and the network; bridge check tries each broker"

// listens reports whether addr has the port of a broker. A body of the storage service breaks off with the same error.
func (c *Client) listens(addr net.Addr) bool {
	tcp, ok := addr.(*net.TCPAddr)
	return ok && slices.ContainsFunc(c.Brokers, func(broker string) bool {
		_, port, err := net.SplitHostPort(broker)
		return err == nil && port == strconv.Itoa(tcp.Port)
	})
}

// rejected reports whether the text is that of an error by which a server rejects our certificate, or wants one.
func rejected(text string) bool {
	return strings.Contains(text, "tls: ") && strings.Contains(text, "remote error")
}

// RegistryAdvice says what to do about an error of the schema registry, or of a connection to it.
func RegistryAdvice(err error) string {
	var answer *sr.ResponseError
	var dial *net.OpError
	switch {
	case errors.As(err, new(*outbound.RedirectError)):
		return "set BRIDGE_REGISTRY_URL to the registry's own address; redirects are not followed"
	case errors.As(err, &dial) && dial.Op == "dial":
		return "start the schema registry, or set BRIDGE_REGISTRY_URL to its address"
	case errors.Is(err, http.ErrSchemeMismatch), errors.As(err, new(tls.RecordHeaderError)):
		return "the registry speaks HTTP without TLS: check the port in BRIDGE_REGISTRY_URL, or begin it with http://"
	case errors.As(err, new(x509.UnknownAuthorityError)):
		return "name the authority that signed the registry's certificate in BRIDGE_REGISTRY_CA_FILE"
	case errors.As(err, new(x509.CertificateInvalidError)):
		return "the registry's certificate is not valid (any more): renew it there"
	case errors.As(err, new(x509.HostnameError)):
		return "name the registry in BRIDGE_REGISTRY_URL as its certificate does"
	case rejected(err.Error()):
		return "set BRIDGE_REGISTRY_CERT_FILE and BRIDGE_REGISTRY_KEY_FILE to a valid certificate of an authority " +
			"that the registry trusts"
	case strings.Contains(err.Error(), `malformed HTTP response "\x15\x03`),
		strings.Contains(err.Error(), "HTTP request to an HTTPS server"):
		return "the registry speaks TLS on this port: begin BRIDGE_REGISTRY_URL with https://"
	case !errors.As(err, &answer):
		return "check the address, the network and the certificates (BRIDGE_REGISTRY_URL, BRIDGE_REGISTRY_CA_FILE)"
	}
	switch answer.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		return "set BRIDGE_REGISTRY_USERNAME and BRIDGE_REGISTRY_PASSWORD, or for a token only the latter, to " +
			"credentials that the registry accepts for this subject"
	case http.StatusNotFound:
		return "check BRIDGE_REGISTRY_URL: it may need a path, such as /apis/ccompat/v7"
	}
	return "look at the registry, or what is in front of it"
}
