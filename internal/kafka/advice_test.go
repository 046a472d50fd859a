package kafka

import (
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/url"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
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
		{&net.OpError{Op: "dial", Err: dns}, "the name is unknown"},
		{&url.Error{Op: "GET", URL: "https://acct", Err: &net.OpError{Op: "dial", Err: dns}}, ""},
		{&TokenError{&url.Error{Op: "POST", URL: "https://login", Err: dns}}, "BRIDGE_KAFKA_SASL_TOKENS"},
		{x509.UnknownAuthorityError{}, "BRIDGE_KAFKA_TLS_CA_FILE"},
		{kerr.SaslAuthenticationFailed, "BRIDGE_KAFKA_SASL_PASSWORD"},
		{kerr.IllegalSaslState, "the port takes no credentials"},
		{kerr.TopicAuthorizationFailed, "run bridge check"},
		{kerr.NotLeaderForPartition, ""},
	} {
		got := (&Client{}).Advice(fmt.Errorf("doing it: %w", tc.err))
		if !strings.Contains(got, tc.says) || (got == "") != (tc.says == "") {
			t.Errorf("%v: %q", tc.err, got)
		}
	}
}
