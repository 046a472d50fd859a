//go:build integration

package browser

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/bridge/pipeline"
	"blobfeed/internal/history"
	"blobfeed/internal/ops"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// scene is an instance as the status page sees it, in a state that a picture can be made of: its clock stands.
type scene struct {
	*ops.Monitor
	now     time.Time
	state   *offsets.State
	written int64
}

// State implements ops.Engine.
func (s *scene) State() *offsets.State { return s.state }

var (
	sceneTime = time.Date(2026, 1, 31, 13, 2, 9, 0, time.UTC)
	sceneHour = sceneTime.Truncate(time.Hour)
	longError = "reading log/00/2026/01/31/1200/00000.avro at 4194304: GET https://myaccount.blob.core.windows.net/" +
		"$blobchangefeed/log/00/2026/01/31/1200/00000.avro?sig=" + strings.Repeat("x", 1500) +
		" <b>This request is not authorized to perform this operation.</b>"
	sceneStates = []string{"start", "catching-up", "failing", "kafka-down", "bundles", "sweeping", "live"}
)

const sceneLeases = 16

func newScene(began time.Time) *scene {
	s := &scene{now: began}
	s.Monitor = ops.NewMonitor("blobfeed", "myaccount.blob.core.windows.net", ops.Info{
		Instance: "bridge-0", Version: "1.0.0", Topic: "blob-changes", Delivery: "exactly_once",
		Example: &ops.Example{Key: `["photos/cat.jpg"]`, Headers: []string{"ce_type: Microsoft.Storage.BlobCreated"},
			Value: `{"after": {"account": "myaccount"}, "key": ["photos/cat.jpg"], "updated": "1769860800000000000.0000000042"}`},
	}, 2*time.Minute, func() time.Time { return s.now })
	s.Watch(s)
	s.Lists(sceneFeed(2))
	return s
}

// sceneFeed has so many days of hours, up to the newest segment.
type sceneFeed int

func (days sceneFeed) Segments(_ context.Context, after source.Segment) iter.Seq2[source.Segment, error] {
	return func(yield func(source.Segment, error) bool) {
		for at := sceneHour.AddDate(0, 0, -int(days)); at.Before(sceneHour); at = at.Add(time.Hour) {
			if seg := source.SegmentAt(at); seg.Compare(after) > 0 && !yield(seg, nil) {
				return
			}
		}
	}
}

// sceneOf returns the instance in a state.
func sceneOf(name string) *scene {
	switch name {
	case "start":
		s := newScene(sceneTime.Add(-4 * time.Second))
		s.Sample()
		s.now = sceneTime
		return s
	case "catching-up":
		s := newScene(sceneTime.Add(-12*time.Minute - 4*time.Second))
		s.join(source.SegmentAt(sceneHour.Add(-5 * time.Hour)))
		s.run(sceneTime, func(minutes float64) {
			s.commit(int(2_100_000*math.Min(1, minutes/2)), time.Duration(450-16*minutes)*time.Minute, false)
		})
		f := s.state.Frontier
		f.Time, f.CatchUp = sceneTime, &offsets.CatchUp{
			Done:  3,
			Left:  4,
			From:  1,
			Since: sceneTime.Add(-52 * time.Second),
		}
		for _, c := range s.state.Cursors[:3] {
			f.CatchUp.Read += c.Counts.Read
		}
		f.CatchUp.Read -= 52 * 210_000
		return s
	}
	s := newScene(sceneTime.Add(-26 * time.Hour))
	if name == "bundles" { // after a year of hours, some of which retention has deleted, two of them undelivered
		s.now = sceneTime.Add(-2 * time.Hour)
		s.Lists(sceneFeed(400))
		s.Segments(context.Background())
		s.Lists(sceneFeed(399))
		at := sceneHour.AddDate(0, 0, -399)
		s.join(source.SegmentAt(at.AddDate(0, 4, 0)))
		s.Failed(-1, &history.GapError{At: source.SegmentAt(at.Add(-2 * time.Hour)), Oldest: source.SegmentAt(at),
			Recorded: true})
		s.History(bridge.History{Newest: sceneHour.Add(-time.Hour)})
		s.now = sceneTime.Add(-time.Hour - 4*time.Second)
		s.run(sceneTime, func(minutes float64) { s.commit(600_000, time.Duration(8000-10*minutes)*time.Hour, false) })
		f := s.state.Frontier
		f.Current, f.Time = source.Segment{}, sceneTime
		f.CatchUp = &offsets.CatchUp{Done: 2900, Left: 6600, From: 2320, Since: sceneTime.Add(-58 * time.Second)}
		for _, c := range s.state.Cursors[:3] {
			f.CatchUp.Read += c.Counts.Read
		}
		f.CatchUp.Read -= 58 * 61_000
		return s
	}
	s.now = sceneTime.Add(-time.Hour - 4*time.Second)
	s.join(source.SegmentAt(sceneHour.Add(-time.Hour)))
	live := func(minutes float64) {
		s.commit(int(1200+700*math.Sin(minutes/3)), time.Duration(110+40*math.Sin(minutes/5))*time.Second, true)
		resolved := s.now.Add(-20 * time.Minute).Truncate(time.Hour).Add(-15 * time.Minute)
		if text := fmt.Sprintf("%d.0000000000", resolved.UnixNano()); text != s.state.Frontier.Resolved {
			s.state.Frontier.Resolved = text
			s.Completed(bridge.Completion{Markers: 6})
		}
	}
	switch name {
	case "failing":
		s.run(sceneTime.Add(-100*time.Second), live)
		s.run(sceneTime, func(float64) {
			s.BrokerAnswered()
			const short = "reading log/01/2026/01/31/1200/00000.avro: 403 AuthorizationFailure"
			for lease, err := range []string{longError, short} {
				s.Active(int32(lease), bridge.Working)
				s.Failed(int32(lease), errors.New(err))
			}
			s.Requested("read", 403, time.Millisecond, 0, nil)
		})
	case "kafka-down":
		s.run(sceneTime.Add(-40*time.Second), live)
		s.run(sceneTime, func(float64) {
			err := errors.New("dial tcp 10.0.0.4:9092: connect: connection refused")
			s.BrokerFailed(err)
			s.Active(0, bridge.Working)
			s.Failed(0, fmt.Errorf("committing the transaction of lease 0: %w", err))
		})
	case "sweeping":
		s.Lists(sceneFeed(90))
		s.run(sceneTime, live)
		s.state.Frontier.Scan = &offsets.Scan{ID: "s", Sweep: true, Requested: sceneTime.Add(-time.Minute), Round: 1,
			Phase: offsets.ScanDelivers}
		for p := range s.state.Cursors {
			if s.state.Cursors[p] == nil {
				s.state.Cursors[p] = new(offsets.Cursor)
			}
			s.state.Cursors[p].Scan = &offsets.Listing{ID: "s", Progress: inventory.Progress{Exhausted: true}}
		}
	default:
		s.run(sceneTime, live)
	}
	return s
}

// sceneFleet has a bridge that is well, and two that have failed with advice.
func sceneFleet() *ops.FleetMonitor {
	f := ops.NewFleetMonitor(ops.Info{Instance: "bridge-0", Version: "1.0.0"})
	all := []*ops.Monitor{sceneOf("live").Monitor}
	for _, name := range []string{"a-bridge-with-a-rather-long-name", "broken"} {
		m := ops.NewMonitor(name, "https://"+name+".blob.core.windows.net", ops.Info{}, time.Minute, nil)
		m.Down(plain.WithRemedy(errors.New("reading meta/segments.json: there is no change feed"),
			"copy the container $blobchangefeed into it"), time.Minute)
		all = append(all, m)
	}
	for _, m := range all {
		f.Show(m, ops.NewLabelled(m))
	}
	return f
}

// join makes the instance the owner of all leases, three of which have shards in the segment.
func (s *scene) join(segment source.Segment) {
	s.state = &offsets.State{
		Frontier: &offsets.Frontier{
			Completed: source.SegmentAt(segment.Time().Add(-time.Hour)), Current: segment,
			Resolved: fmt.Sprintf("%d.0000000000", segment.Time().Add(-15*time.Minute).UnixNano()),
			Topics:   map[string]int32{"blob-changes": 6},
		},
		Cursors: make([]*offsets.Cursor, sceneLeases), Owners: make([]string, sceneLeases),
	}
	leases := make([]int32, sceneLeases)
	for p := range leases {
		leases[p] = int32(p)
	}
	s.Leased(bridge.LeasesAssigned, leases)
	for p := range leases {
		if p > 2 {
			s.Active(int32(p), bridge.Waiting)
			continue
		}
		s.state.Owners[p] = "bridge-0"
		at := source.ShardPosition{Chunk: p, Offset: int64(21451 * (p + 1))}
		s.state.Cursors[p] = &offsets.Cursor{
			Segment: segment, Time: s.now, Ahead: 86, Listed: 100,
			Shards: map[string]source.ShardPosition{source.ShardName(p): at},
		}
	}
	s.History(bridge.History{Newest: sceneHour.Add(-time.Hour), Headroom: 6 * 24 * time.Hour})
}

// run calls step, and takes a sample, every ten seconds until a time.
func (s *scene) run(until time.Time, step func(minutes float64)) {
	for began := s.now; !s.now.After(until); s.now = s.now.Add(10 * time.Second) {
		step(s.now.Sub(began).Minutes())
		s.Sample()
	}
	s.now = until
}

// commit reports a transaction of each lease that has shards, with events of an age.
func (s *scene) commit(events int, age time.Duration, drained bool) {
	s.BrokerAnswered()
	s.Requested("read", 206, time.Millisecond, 100, nil)
	for p := range int32(3) {
		c := bridge.Commit{
			Lease: p, Read: events / 3, Emitted: events / 3, Bytes: events * 140, Seen: s.now.Add(-age), Drained: drained,
		}
		if drained {
			c.Published = s.now.Add(-2 * time.Second)
		}
		c.Recent = s.records(p, age)
		s.Committed(c)
		s.state.Cursors[p].Counts.Read += int64(events / 3)
		s.Wrote("blob-changes", 2*p, events/6+int(p))
		s.Wrote("blob-changes", 2*p+1, events/5)
		if drained {
			s.state.Cursors[p].Ahead = 0
			s.Active(p, bridge.Drained)
		}
	}
}

// records are the last ones of a transaction.
func (s *scene) records(lease int32, age time.Duration) *pipeline.Recent {
	r := new(pipeline.Recent)
	for i, path := range [][]string{
		{"invoices/2026/INV-1042, page 1.pdf", "photos/2026/summer/IMG_4587.jpg", "uploads/video-21.mp4.part"},
		{"reports/2026/sales by region.csv", "$web/index.html", "logs/app/2026-01-31T08.json"},
		{"videos/2026/video-21.mp4", "photos/originals/2026/01/31/cat-on-the-roof.jpg", "invoices/2026/INV-1043.pdf"},
	}[lease] {
		s.written += 7
		kind, size := "BlobCreated", 640+11*i
		if i == 2 && lease == 0 {
			kind, size = "BlobDeleted", 127
		}
		r.Keep(&kgo.Record{
			Topic: "blob-changes", Partition: 2*lease + int32(i%2), Offset: 1_204_511 + s.written, Key: []byte(`["` + path + `"]`),
			Value: make([]byte, size), Timestamp: s.now.Add(-age - time.Duration(i)*time.Second),
			Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte("Microsoft.Storage." + kind)}},
		})
	}
	return r
}
