package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/status"
	"blobfeed/internal/testing/fakebroker"
)

// An instance with nothing to do says within seconds that Kafka is away: nothing it does would show it sooner. The log
// says so, too.
func TestKafkaAwayShowsWithinSeconds(t *testing.T) {
	fake := fakebroker.New(t)
	setAll(t, map[string]string{
		"SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020"), "KAFKA_BROKERS": fake.ListenAddrs()[0],
		"POLL_INTERVAL": "50ms", "COMMIT_INTERVAL": "50ms", "OFFSETS_LEASES": "2", "LOG_FORMAT": "json",
		"DEBUG": "report_interval=100ms", "HTTP_ADDR": "127.0.0.1:0",
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var log safeBuffer
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, []string{"run"}, &log, &log) }()
	defer func() { cancel(); <-ended }()
	const serving = `"msg":"serving HTTP","address":"`
	await(t, "HTTP is served", func() bool { return strings.Contains(log.String(), serving) })
	_, address, _ := strings.Cut(log.String(), serving)
	address, _, _ = strings.Cut(address, `"`)
	verdict := func() status.Verdict { return statusAt(t, address).Verdict }
	await(t, "the bridge is up to date", func() bool { return verdict().Code == status.UpToDate })
	fake.Close()
	began := time.Now()
	await(t, "the page is amber", func() bool {
		v := verdict()
		return v.Code == status.Degraded && strings.Contains(v.Text, "Kafka has not answered for ")
	})
	if took := time.Since(began); took > 8*time.Second {
		t.Errorf("it took %s", took)
	}
	// The log has the first verdict that is degraded. Which failure comes first depends on when the next heartbeat is
	// due.
	said := regexp.MustCompile(`"level":"WARN","msg":"progress","verdict":"degraded: ` +
		`(Kafka has not answered|the instance is not a member of the group: .*: unable to dial)`)
	await(t, "the log says so", func() bool { return said.MatchString(log.String()) })
}
