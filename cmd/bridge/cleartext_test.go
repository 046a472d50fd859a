package main

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/internal/testing/fakebroker"
)

// run and check say that the password for Kafka is sent unencrypted, and do not show it.
func TestClearTextIsTold(t *testing.T) {
	t.Parallel()
	fake := fakebroker.New(t, kfake.EnableSASL(), kfake.Superuser("PLAIN", "bridge", "hunter2"))
	setAll(t, map[string]string{
		"SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020"), "KAFKA_BROKERS": fake.ListenAddrs()[0],
		"KAFKA_SASL_MECHANISM": "PLAIN", "KAFKA_SASL_USERNAME": "bridge", "KAFKA_SASL_PASSWORD": "hunter2",
		"OFFSETS_LEASES": "2", "HTTP_ADDR": "off", "LOG_FORMAT": "json",
	})
	code, _, log := call(t, "run", "--once")
	start := log[:strings.Index(log, "\n")]
	if code != exitOK || !strings.Contains(start, `"level":"WARN","msg":"starting"`) || !strings.Contains(start,
		"unencrypted: set BRIDGE_KAFKA_TLS_ENABLED=true") {
		t.Errorf("exit code %d: %s", code, log)
	}
	_, out, _ := call(t, "check")
	if !strings.Contains(out, "security") || !strings.Contains(out, " -> set BRIDGE_KAFKA_TLS_ENABLED=true\n") {
		t.Errorf("check has no line for the remedy: %s", out)
	}
}
