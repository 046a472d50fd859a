package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// deliverMore delivers what the feed got since. A bridge that runs meanwhile would make the test longer, not stricter:
// TestVerifyLive does that.
func deliverMore(t *testing.T, feed *feedsim.Feed, segments int) {
	t.Helper()
	for range segments {
		if err := errors.Join(feed.Append(t.Context(), 60, nil), feed.Next(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	o := bridgeOptions(t)
	o.Once = true
	if err := bridge.New(o).Run(t.Context(), t.Context()); err != nil {
		t.Fatal(err)
	}
}

// bridgeOptions returns those of a bridge, by the settings in the environment.
func bridgeOptions(t *testing.T) bridge.Options {
	t.Helper()
	c, err := environ(t).Load(true)
	if err != nil {
		t.Fatal(err)
	}
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		t.Fatal(err)
	}
	log, shown := progress.New(c, io.Discard)
	o.Log, o.Observer = log, bridge.Observers{shown}
	return o
}

// openFeed opens a feed that grows.
func openFeed(t *testing.T, spec feedsim.Spec) (dir string, feed *feedsim.Feed) {
	t.Helper()
	dir = t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), spec)
	if err := errors.Join(err, feed.Open(t.Context())); err != nil {
		t.Fatal(err)
	}
	return dir, feed
}

// small is a feed of small segments.
var small = feedsim.Spec{Shards: 3, EventsPerSegment: 60, BlockEvents: 5}

// following is a running bridge verify --feed --follow.
type following struct {
	t            *testing.T
	address      string
	stop         context.CancelFunc
	done         chan int
	stdout, errs bytes.Buffer // once it is done
}

func startFollowing(t *testing.T) *following {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &following{t: t, address: l.Addr().String(), done: make(chan int, 1)}
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	setenv(t, "BRIDGE_HTTP_ADDR", f.address)
	ctx, cancel := context.WithCancel(t.Context())
	f.stop = cancel
	var ended sync.WaitGroup
	ended.Go(func() {
		f.done <- execute(ctx, environ(t), []string{"verify", "--feed", "--follow"}, &f.stdout, &f.errs)
	})
	t.Cleanup(func() { cancel(); ended.Wait() })
	return f
}

func (f *following) get(path string) string {
	resp, err := http.Get("http://" + f.address + path)
	if err != nil {
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		f.t.Error(err)
	}
	return string(body)
}

// verified waits until it has verified more than through, and returns how far it is.
func (f *following) verified(through time.Time) (now time.Time, records int64) {
	f.t.Helper()
	for limit := time.Now().Add(time.Minute); time.Now().Before(limit); time.Sleep(20 * time.Millisecond) {
		var s struct{ Topics []followedTopic }
		_ = json.Unmarshal([]byte(f.get("/status")), &s)
		now, records = time.Time{}, 0
		for i, topic := range s.Topics {
			if records += topic.Records; i == 0 || topic.VerifiedThrough.Before(now) {
				now = topic.VerifiedThrough
			}
		}
		if now.After(through) {
			return now, records
		}
		select {
		case code := <-f.done:
			f.t.Fatalf("it ended with %d: %s%s", code, f.stdout.String(), f.errs.String())
		default:
		}
	}
	f.t.Fatal("nothing more was verified")
	return now, records
}

// broken waits until it ends because of a check.
func (f *following) broken(check, says string) {
	f.t.Helper()
	select {
	case code := <-f.done:
		text := f.stdout.String() + f.errs.String()
		if code != exitBroken || !strings.Contains(text, "BROKEN       "+check) || !strings.Contains(text, says) {
			f.t.Errorf("exit code %d, want %s broken and %q: %s", code, check, says, text)
		}
	case <-time.After(time.Minute):
		f.t.Error("it does not end")
	}
}

// A follower verifies the topic as it grows, and ends at the first broken promise.
func TestVerifyFollow(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		settings string
		hurt     func(t *testing.T, cl *kgo.Client)
		check    string
		says     string
	}{
		"a foreign record": {"", func(t *testing.T, cl *kgo.Client) {
			produce(t, cl, written, []*kgo.Record{{Key: []byte("foreign"), Value: []byte(`{}`), Partition: 1}})
		}, "replay", "no event of this key is expected"},
		"records are missing": {"", func(t *testing.T, _ *kgo.Client) {
			setenv(t, "BRIDGE_EVENT_TYPES", "!BlobDeleted") // for the bridge, and not for the follower
		}, "replay", "is missing, number"},
		"an old record again, markers aside": {"RESOLVED_TO=topic", func(t *testing.T, cl *kgo.Client) {
			r := readBy(t, []kgo.Opt{kgo.SeedBrokers(environ(t)["BRIDGE_KAFKA_BROKERS"])}, written)[0]
			again := *r
			produce(t, cl, written, []*kgo.Record{&again})
		}, "replay", "expected"},
	} {
		t.Run(name, func(t *testing.T) {
			dir, feed := openFeed(t, small)
			settings := append([]string{"POLL_INTERVAL=50ms"}, strings.Fields(c.settings)...)
			cl := delivered(t, dir, settings...) // nothing is resolved yet
			f := startFollowing(t)
			deliverMore(t, feed, 3)
			first, _ := f.verified(time.Time{})
			deliverMore(t, feed, 2)
			second, count := f.verified(first)
			if second.Before(first.Add(time.Hour)) || count == 0 {
				t.Errorf("verified through %v, then %v, %d records", first, second, count)
			}
			if text := f.get("/metrics"); !strings.Contains(text, `bridge_verify_verified_through_seconds{topic="changes"}`) ||
				!strings.Contains(text, `bridge_verify_records_total{topic="changes"} `) {
				t.Error(text)
			}
			c.hurt(t, cl)
			deliverMore(t, feed, 1)
			f.broken(c.check, c.says)
		})
	}
}

// After a seek, of a bridge that runs or not, a follower compares everything again, and counts it once.
func TestVerifyFollowsASeek(t *testing.T) {
	t.Parallel()
	dir, feed := openFeed(t, small)
	cl := delivered(t, dir, "POLL_INTERVAL=50ms")
	deliverMore(t, feed, 3)
	f := startFollowing(t)
	through, _ := f.verified(time.Time{})
	goesOn := func(to string, more func()) {
		t.Helper()
		await(t, "the bridge lets the lease go", func() bool { // a running instance may take it back
			code, _, stderr := call(t, "seek", "--to", to, "--yes", "--force")
			if code != exitOK && !strings.Contains(stderr, "repeat the command") &&
				!strings.Contains(stderr, "INVALID_TXN_STATE") { // as a commit behind a takeover may be answered
				t.Fatal(stderr)
			}
			return code == exitOK
		})
		more()
		for range 2 { // everything, and what comes then
			if err := errors.Join(feed.Append(t.Context(), 60, nil), feed.Next(t.Context())); err != nil {
				t.Fatal(err)
			}
			more()
			var records int64
			through, records = f.verified(through)
			rs := readBy(t, cl.Opts(), written)
			rs = slices.DeleteFunc(rs, func(r *kgo.Record) bool { return r.Key == nil })
			if int(records) != len(rs) {
				t.Errorf("after the seek to %s %d records were verified, and there are %d", to, records, len(rs))
			}
		}
	}
	for _, to := range []string{"earliest", "2026/01/01/0400"} {
		goesOn(to, func() { deliverMore(t, feed, 0) })
	}
	o := bridgeOptions(t)
	stop, cancel := context.WithCancel(t.Context())
	var working sync.WaitGroup
	working.Go(func() {
		if err := bridge.New(o).Run(stop, t.Context()); err != nil {
			t.Error(err)
		}
	})
	for _, to := range []string{"2026/01/01/0600", "2026/01/01/0200"} {
		goesOn(to, func() {
			await(t, "the bridge is at the end", func() bool {
				newest := source.SegmentAt(feed.Segment().Add(-time.Hour)).String()
				at := statusOf(t).Position
				return at.Seek == nil && at.Completed == newest
			})
		})
	}
	cancel()
	working.Wait()
	f.stop()
	if code := <-f.done; code != exitOK {
		t.Errorf("exit code %d: %s", code, f.errs.String())
	}
}

// What happens to topics while they are followed, and is right.
func TestVerifyFollowsGrowth(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"RESOLVED_TO=inline", "RESOLVED_TO=topic", "TOPIC={container}"} {
		t.Run(settings, func(t *testing.T) {
			dir, feed := openFeed(t, small)
			cl := delivered(t, dir, "POLL_INTERVAL=50ms", settings)
			f := startFollowing(t)
			deliverMore(t, feed, 2)
			through, count := f.verified(time.Time{})
			admin := kadm.NewClient(cl)
			listed, err := admin.ListTopics(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, name := range listed.Names() {
				if !strings.HasSuffix(name, ".offsets") && !strings.HasSuffix(name, ".resolved") {
					names = append(names, name)
				}
			}
			for partitions := range 2 {
				if _, err := admin.UpdatePartitions(t.Context(), 5+partitions, names...); err != nil {
					t.Fatal(err)
				}
				deliverMore(t, feed, 2)
				before := count
				if through, count = f.verified(through); count <= before {
					t.Errorf("%d records, then %d", before, count)
				}
			}
		})
	}
}

// A follower of a feed with an end ends there.
func TestVerifyFollowsToTheEnd(t *testing.T) {
	t.Parallel()
	delivered(t, "../../testdata/real-2020", "END_TIME=2020-05-27T20:00:00Z", "POLL_INTERVAL=50ms")
	f := startFollowing(t)
	select {
	case code := <-f.done:
		if text := f.stdout.String(); code != exitOK || !strings.Contains(text, "up to BRIDGE_END_TIME") {
			t.Errorf("exit code %d: %s%s", code, text, f.errs.String())
		}
	case <-time.After(time.Minute):
		t.Error("it does not end")
	}
}

// A reset ends the promises of a topic that is kept, also behind a seek: a follower says so.
func TestVerifyFollowsAReset(t *testing.T) {
	t.Parallel()
	dir, feed := openFeed(t, small)
	delivered(t, dir, "POLL_INTERVAL=50ms")
	deliverMore(t, feed, 2)
	f := startFollowing(t)
	through, _ := f.verified(time.Time{})
	move := func(args ...string) {
		t.Helper()
		if code, _, stderr := call(t, args...); code != exitOK {
			t.Fatal(stderr)
		}
		deliverMore(t, feed, 2)
	}
	move("seek", "--to", "earliest", "--yes")
	f.verified(through)
	move("reset", "--yes")
	f.broken("unique", "is repeated")
}
