package bridge

import (
	"context"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/offsets"
)

// scansOnly returns options for a scan that nothing follows.
func scansOnly(t *testing.T, c *kfake.Cluster, a *account.Account) Options {
	t.Helper()
	o, _ := options(t, c, writeFeed(t, feedsim.Spec{EventsPerSegment: 60, Segments: 1, Shards: 3}))
	o.Feed.InitialScan, o.Feed.AccountURL, o.Pace.ScanRequests, o.Pace.ScanRound = ScanOnly, "https://a/", 4, time.Second
	o.Feed.Inventory, o.Once = &account.Store{Account: a}, false
	return o
}

// With only, the bridge ends after a marker for the time when the listing ended.
func TestScanOnly(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		transactional bool
		markers       envelope.Markers
		want          int
	}{
		"exactly once":  {true, envelope.MarkersInline, 1},
		"at least once": {false, envelope.MarkersInline, 1},
		"no markers":    {true, envelope.MarkersOff, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			broker := broker(t)
			o := scansOnly(t, broker, filled(3, 100))
			o.Kafka.Transactional, o.Records.Markers = c.transactional, c.markers
			must(t, New(o).Run(t.Context(), t.Context()))
			seen := newScanned()
			consume(t, broker, seen)
			if seen.rows != 300 || seen.events != 0 || len(seen.markers) != c.want {
				t.Errorf("%d rows, %d events, markers %v", seen.rows, seen.events, seen.markers)
			}
			f := awaitState(t, o, "it has ended", func(s *offsets.State) bool {
				return s.Frontier != nil && s.Frontier.Ended
			}).Frontier
			listed, err := envelope.ParseTimestamp(f.Scan.Listed)
			must(t, err)
			if time.Since(time.Unix(0, listed.Wall)) > time.Minute || f.Resolved != f.Scan.Listed && c.want > 0 {
				t.Errorf("listed at %v, resolved %q", listed, f.Resolved)
			}
		})
	}
}

// Without transactions, the brokers reject the marker that ends everything. The next attempt writes it, and the bridge
// ends then: nothing follows in the feed that would make it look once more.
func TestEndWithoutItsMarker(t *testing.T) {
	t.Parallel()
	for name, set := range map[string]func(*Options){
		"of a scan": func(*Options) {},
		"of the feed": func(o *Options) {
			o.Feed.InitialScan, o.Feed.Filter.Containers = NoScan, []string{"none"}
			o.Feed.End = envelope.Timestamp{Wall: hourOf(0).Add(30 * time.Minute).UnixNano()}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := broker(t)
			o := scansOnly(t, c, filled(1, 0))
			o.Kafka.Transactional, o.Pace.BundleBytes = false, 0
			set(&o)
			c.Fault(kfake.Fault{Keys: []kmsg.Key{kmsg.Produce}, Topic: topic, Err: kerr.TopicAuthorizationFailed,
				Count: 1})
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
			defer cancel()
			must(t, New(o).Run(ctx, ctx))
			if ctx.Err() != nil {
				t.Error("it has not ended")
			}
			if _, markers := consume(t, c); markers < partitions {
				t.Errorf("%d markers", markers)
			}
		})
	}
}
