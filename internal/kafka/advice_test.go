package kafka

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/internal/outbound"
)

// Each error of the brokers has a next step. An error of another service has none here: a name that the DNS does not
// know may be that of the storage account.
func TestAdvice(t *testing.T) {
	dns := &net.DNSError{Name: "k"}
	for _, tc := range []struct {
		err  error
		says string
	}{
		{&net.OpError{Op: "dial", Err: errors.New("connection refused")}, "set BRIDGE_KAFKA_BROKERS"},
		{&net.OpError{Op: "dial", Err: dns}, "correct the name in BRIDGE_KAFKA_BROKERS"},
		{&url.Error{Op: "GET", URL: "https://acct", Err: &net.OpError{Op: "dial", Err: dns}}, ""},
		{&TokenError{&url.Error{Op: "POST", URL: "https://login", Err: dns}}, "BRIDGE_KAFKA_SASL_TOKENS"},
		{x509.UnknownAuthorityError{}, "BRIDGE_KAFKA_TLS_CA_FILE"},
		{kerr.SaslAuthenticationFailed, "correct BRIDGE_KAFKA_SASL_USERNAME and BRIDGE_KAFKA_SASL_PASSWORD"},
		{kerr.UnsupportedSaslMechanism, "set BRIDGE_KAFKA_SASL_MECHANISM to one that the brokers have"},
		{kerr.InvalidTxnState, "raise BRIDGE_TXN_TIMEOUT"},
		{kerr.IllegalSaslState, "the port takes no credentials"},
		{kerr.TopicAuthorizationFailed, "run bridge check"},
		{kerr.InvalidReplicationFactor, "BRIDGE_TOPIC_REPLICATION to at most the number of brokers"},
		{kerr.PolicyViolation, "BRIDGE_TOPIC_PARTITIONS and BRIDGE_TOPIC_REPLICATION to what the brokers allow"},
		{kerr.NotController, ""},
		{silent(9092), "bridge check tries each broker"},
		{silent(443), ""}, // of the storage service
		{errors.New("it is the beginning of an HTTP response"), "an HTTP server"},
		{errors.New("invalid large response size 1008813135 > limit 33554432"), "does not answer as Kafka does"},
		{&net.OpError{Op: "read", Err: errors.New("connection reset by peer")}, ""},
		{kerr.NotLeaderForPartition, ""},
	} {
		got := (&Client{Brokers: []string{"k:9092"}}).Advice(fmt.Errorf("doing it: %w", tc.err))
		if !strings.Contains(got, tc.says) || (got == "") != (tc.says == "") {
			t.Errorf("%v: %q", tc.err, got)
		}
	}
}

// What the settings already have is not advised.
func TestAdviceOfSettings(t *testing.T) {
	dir := t.TempDir()
	cert, key, err := issue(t, authority(t, "mine"), "bridge", -time.Minute).Write(dir, "client")
	if err != nil {
		t.Fatal(err)
	}
	rejected := errors.New("remote error: tls: unknown certificate")
	sasl := errors.New("EOF (is SASL missing?)")
	for _, tc := range []struct {
		tls  *TLS
		err  error
		want string
	}{
		{&TLS{CAFile: "ca.crt"}, x509.UnknownAuthorityError{}, "BRIDGE_KAFKA_TLS_CA_FILE lacks the authority that signed " +
			"the brokers' certificates: add it"},
		{&TLS{CertFile: cert, KeyFile: key}, rejected,
			"the client certificate in BRIDGE_KAFKA_TLS_CERT_FILE has expired: replace its file"},
		{&TLS{}, rejected, "the brokers reject our certificate: set BRIDGE_KAFKA_TLS_CERT_FILE to one of an authority in " +
			"their truststore"},
		{&TLS{}, sasl, "the brokers want credentials on this port: set BRIDGE_KAFKA_SASL_MECHANISM"},
		{nil, sasl, "the brokers want credentials on this port: set BRIDGE_KAFKA_SASL_MECHANISM; or they speak TLS: set " +
			"BRIDGE_KAFKA_TLS_ENABLED=true"},
	} {
		if got := (&Client{TLS: tc.tls}).Advice(tc.err); got != tc.want {
			t.Errorf("%+v, %v: %q\nwant %q", tc.tls, tc.err, got, tc.want)
		}
	}
}

// silent is the error of a peer with this port that does not answer in time.
func silent(port int) error {
	return &net.OpError{Op: "read", Addr: &net.TCPAddr{Port: port}, Err: os.ErrDeadlineExceeded}
}

// An error of the registry has a next step, too, by what it says.
func TestRegistryAdvice(t *testing.T) {
	for says, err := range map[string]error{
		"redirects are not followed":   new(outbound.RedirectError),
		"start the schema registry":    &url.Error{Op: "POST", Err: &net.OpError{Op: "dial", Err: errors.New("refused")}},
		"name the authority":           x509.UnknownAuthorityError{},
		"BRIDGE_REGISTRY_CA_FILE":      &url.Error{Op: "GET", Err: errors.New("EOF")},
		"begin it with http://":        &url.Error{Op: "GET", Err: http.ErrSchemeMismatch},
		"set BRIDGE_REGISTRY_USERNAME": &sr.ResponseError{StatusCode: 401},
		"it may need a path":           &sr.ResponseError{StatusCode: 404},
		"what is in front of it":       &sr.ResponseError{StatusCode: 502},
		"speaks HTTP without TLS":      tls.RecordHeaderError{},
		"renew it there":               &url.Error{Op: "GET", Err: x509.CertificateInvalidError{Reason: x509.Expired}},
		"as its certificate does":      x509.HostnameError{Certificate: new(x509.Certificate)},
		"begin BRIDGE_REGISTRY_URL with https://": &url.Error{Op: "GET",
			Err: errors.New(`malformed HTTP response "\x15\x03\x03"`)}, // of servers in Java
	} {
		if got := RegistryAdvice(fmt.Errorf("doing it: %w", err)); !strings.Contains(got, says) {
			t.Errorf("%v: %q, want %q", err, got, says)
		}
	}
}
