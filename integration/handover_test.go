//go:build integration

package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// Instances come and go while a feed grows: how long events wait is what users see of it. The bounds are wide; the
// figures are for docs/project/performance.md.
func TestHandover(t *testing.T) {
	t.Parallel()
	const (
		tick    = 50 * time.Millisecond
		session = 10 * time.Second // the default
	)
	ctx, root := t.Context(), t.TempDir()
	name, topic := names(t, shared.KafkaBrokers, -1)
	settings := []string{"SOURCE_URL=file://" + root, "NAME=" + name, "TOPIC=" + topic, "EVENTS=all",
		"KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ","),
		"POLL_INTERVAL=" + tick.String(), "DEBUG=quiet_interval=" + tick.String(), "COMMIT_INTERVAL=" + tick.String(),
		"SESSION_TIMEOUT=" + session.String()}
	feed, err := feedsim.New(feedsim.Dir(root), feedsim.Spec{Seed: 5, Shards: 8, Blobs: 200, Versions: []int{6}})
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	must(err)
	must(feed.Open(ctx))
	complete := arrivals.New()
	c := consume(t, shared.KafkaBrokers, topic, verify.NewUnique(), complete, verify.NewOrder())
	appended := map[string]time.Time{}
	var longest time.Duration
	c.onNote = func(r verify.Record) {
		if at, ok := appended[header(r, "ce_id")]; ok {
			longest = max(longest, time.Since(at))
		}
	}
	// live lets the feed grow for so long, and until everything is there; it returns how long an event waited at most.
	live := func(d time.Duration) time.Duration {
		t.Helper()
		longest = 0
		for due := time.Now(); d > 0; d -= tick {
			must(feed.Append(ctx, 16, func(e feedsim.Event) {
				complete.Expect(e.ID)
				appended[e.ID] = time.Now()
			}))
			due = due.Add(tick)
			for time.Now().Before(due) {
				c.poll(ctx, time.Until(due))
			}
		}
		c.until(t, time.Minute, "all events", func() bool { return complete.Left() == 0 })
		return longest
	}
	one := start(t, []string{"run"}, settings...)
	live(2 * time.Second)
	t.Logf("one instance: events wait %s at most", live(3*time.Second))
	two := start(t, []string{"run"}, settings...)
	t.Logf("a second one joins: %s", live(5*time.Second))
	t.Logf("two instances: %s", live(3*time.Second))
	one.signal(syscall.SIGTERM)
	stopped := live(5 * time.Second)
	t.Logf("one of two stops: %s", stopped)
	if stopped >= session/2 {
		t.Errorf("a planned stop held events up for %s", stopped)
	}
	start(t, []string{"run"}, settings...)
	live(4 * time.Second)
	two.signal(syscall.SIGKILL)
	killed := live(5 * time.Second)
	t.Logf("one of two is killed, with a session of %s: %s", session, killed)
	if killed < session/2 || killed > 2*session {
		t.Errorf("a crash held events up for %s, the session is %s", killed, session)
	}
	c.check(t)
}
