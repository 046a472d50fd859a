//go:build integration

package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
)

// Without transactions, in catch-up: the program is killed three times, and paused for longer than its session while
// another one delivers all; then it wakes up. First deliveries are in order and above every marker, markers never fall,
// and every key ends on its newest record: bridge verify judges that.
func TestAtLeastOnce(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	// Small segments and large bundles, so that a kill meets one in the middle.
	feed := feedsim.Spec{Seed: 3, Segments: 400, Shards: 3, EventsPerSegment: 500, BlockEvents: 50, Blobs: 800}
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), feed, nil); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, shared.KafkaBrokers, -1)
	settings := []string{
		"NAME=" + name, "TOPIC=" + topic, "DELIVERY=at_least_once", "KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers,
			","),
		"SOURCE_URL=" + fileURL(t, dir), "SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=2s", "DEBUG=bundle_bytes=32MiB",
	}
	c := consume(t, shared.KafkaBrokers, topic)
	progress := func(what string) {
		t.Helper()
		before := c.data
		c.until(t, time.Minute, what, func() bool { return c.data > before })
	}
	for range 3 {
		p := start(t, []string{"run"}, settings...)
		progress("progress before a kill")
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	paused := start(t, []string{"run"}, settings...)
	eventually(t, time.Minute, "it has leases to lose", func() bool {
		return strings.Contains(paused.log.String(), "leases assigned")
	})
	progress("progress before the pause")
	paused.signal(syscall.SIGSTOP)
	other := start(t, []string{"run"}, settings...)
	eventually(t, time.Minute, "the other one delivers all", func() bool {
		return other.status(t).Position.Completed == "2026/01/17/1500"
	})
	paused.signal(syscall.SIGCONT)
	eventually(t, time.Minute, "it hears that its leases are lost", func() bool {
		log := paused.log.String()
		return strings.Contains(log, "lost=true") || strings.Contains(log, `"lost":true`)
	})
	for _, p := range []*program{paused, other} {
		p.signal(syscall.SIGTERM)
		if code := p.wait(t, 20*time.Second); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	runOnce(t, settings...)
	judge := start(t, []string{"verify", "--feed"}, settings...)
	if code := judge.wait(t, time.Minute); code != 0 {
		t.Errorf("verify ended with %d", code)
	}
}
