package main

import (
	"context"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/internal/status"
	"blobfeed/internal/testing/fakebroker"
)

// upToDate starts an instance that delivers a feed and has nothing more to do. It returns its log, and how it is.
func upToDate(t *testing.T, fake *kfake.Cluster) (log *safeBuffer, verdict func() status.Verdict) {
	t.Helper()
	setAll(t, map[string]string{
		"SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020"), "KAFKA_BROKERS": fake.ListenAddrs()[0],
		"POLL_INTERVAL": "50ms", "COMMIT_INTERVAL": "50ms", "OFFSETS_LEASES": "2", "LOG_FORMAT": "json",
		"DEBUG": "report_interval=100ms", "HTTP_ADDR": "127.0.0.1:0", "TOPIC": changes,
	})
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	log = new(safeBuffer)
	ended := make(chan int, 1)
	go func() { ended <- execute(ctx, environ(t), []string{"run"}, log, log) }()
	t.Cleanup(func() { cancel(); <-ended })
	const serving = `"msg":"serving HTTP","address":"`
	await(t, "HTTP is served", func() bool { return strings.Contains(log.String(), serving) })
	_, address, _ := strings.Cut(log.String(), serving)
	address, _, _ = strings.Cut(address, `"`)
	verdict = func() status.Verdict { return statusAt(t, address).Verdict }
	await(t, "the bridge is up to date", func() bool { return verdict().Code == status.UpToDate })
	return log, verdict
}

// An instance with nothing to do says within seconds that Kafka is away: nothing it does would show it sooner. The log
// says so, too.
func TestKafkaAwayShowsWithinSeconds(t *testing.T) {
	t.Parallel()
	fake := fakebroker.New(t)
	log, verdict := upToDate(t, fake)
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

// Neither is it up to date when its topic was deleted, also after somebody has created it again: records are gone.
func TestDeletedTopicShows(t *testing.T) {
	defer func(every time.Duration) { lookEvery = every }(lookEvery) // of all tests, so this one is not parallel
	lookEvery = 0
	fake := fakebroker.New(t)
	_, verdict := upToDate(t, fake)
	admin := fakebroker.Admin(t, fake)
	deleteTopic(t, admin)
	await(t, "the page says so", func() bool {
		v := verdict()
		return v.Code == status.Degraded && strings.Contains(v.Text, "topic changes does not exist") && v.Remedy != ""
	})
	if _, err := admin.CreateTopic(t.Context(), 6, 1, nil, changes); err != nil {
		t.Fatal(err)
	}
	await(t, "it says that the records are gone", func() bool {
		return strings.Contains(verdict().Text, "topic changes was deleted and created again, and its records are gone")
	}) // also if the first look came when the topic was gone: see Reader.Gone
}
