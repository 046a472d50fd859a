//go:build integration

package integration

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
)

// The password is replaced under a running bridge, first at the brokers and later in its file: it goes on.
func TestRotation(t *testing.T) {
	t.Parallel()
	s := secureStack(t)
	ctx := t.Context()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "password")
	name, topic := names(t, s.KafkaBrokers, 1)
	must(os.WriteFile(file, []byte("first-password\n"), 0o600))
	must(s.SetPassword(ctx, "bridge", "first-password"))
	must(s.Allow(ctx, aclsOf(t, "bridge", name, topic)...))
	settings := []string{"NAME=" + name, "TOPIC=" + topic, "EVENTS=all", "SOURCE_URL=" + fileURL(t, dir),
		"POLL_INTERVAL=500ms", "KAFKA_BROKERS=" + s.Security.Scram[0],
		"KAFKA_TLS_ENABLED=true", "KAFKA_TLS_CA_FILE=" + s.Security.CAFile, "KAFKA_SASL_MECHANISM=SCRAM-SHA-512",
		"KAFKA_SASL_USERNAME=bridge", "KAFKA_SASL_PASSWORD_FILE=" + file}
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 200, Blobs: 50})
	must(err)
	must(feed.Open(ctx))
	must(feed.Append(ctx, 20, nil))
	checked(t, settings, clean)
	p := start(t, []string{"run"}, settings...)
	c := consume(t, s.KafkaBrokers, topic)
	c.until(t, 30*time.Second, "the first events", func() bool { return c.data == 20 })
	must(s.SetPassword(ctx, "bridge", "second-password"))
	// Connections that are open stay good. A broker that comes back asks again.
	must(s.StopBroker(0))
	must(s.StartBroker(ctx, 0))
	must(feed.Append(ctx, 20, nil))
	within(t, 30*time.Second, "the bridge says that its password is wrong",
		func() bool { return strings.Contains(p.log.String(), "SASL_AUTHENTICATION_FAILED") })
	must(os.WriteFile(file, []byte("second-password\n"), 0o600))
	c.until(t, time.Minute, "the other events", func() bool { return c.data == 40 })
}

// within polls until cond holds.
func within(t *testing.T, limit time.Duration, what string, cond func() bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	for tick := time.NewTicker(50 * time.Millisecond); !cond(); {
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("after %s still not: %s", limit, what)
		}
	}
}

// unsigned returns a token that brokers for tests believe.
func unsigned(t *testing.T, subject string) string {
	t.Helper()
	now := time.Now().Unix()
	claims, err := json.Marshal(map[string]any{"sub": subject, "iat": now, "exp": now + 3600, "scope": "kafka"})
	if err != nil {
		t.Error(err)
	}
	return base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." +
		base64.RawURLEncoding.EncodeToString(claims) + "."
}
