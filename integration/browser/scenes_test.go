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
	now   time.Time
	state *offsets.State
	ends  [6]int64 // of the partitions of the topic
	seen  int      // events so far
}

// State implements ops.Engine.
func (s *scene) State() *offsets.State { return s.state }

var (
	sceneTime   = time.Date(2026, 1, 31, 13, 2, 9, 0, time.UTC)
	sceneHour   = sceneTime.Truncate(time.Hour)
	sceneOldest = sceneHour.AddDate(0, 0, -2) // what the feed begins with
	longError   = "reading log/00/2026/01/31/1200/00004.avro at 97204318: GET https://myaccount.blob.core.windows.net/" +
		"$blobchangefeed/log/00/2026/01/31/1200/00004.avro?sig=" + strings.Repeat("x", 1500) +
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
		const segmentEvents = 2_262_000
		s := newScene(sceneTime.Add(-12*time.Minute - 4*time.Second))
		s.join(source.SegmentAt(sceneOldest))
		f := s.state.Frontier
		f.CatchUp = &offsets.CatchUp{Left: 48, Since: s.now}
		s.run(sceneTime, func(minutes float64) {
			events := int(1_480_000 * math.Min(1, minutes/2))
			hours := float64(s.seen+events) / segmentEvents
			s.commit(events, s.now.Sub(sceneOldest.Add(time.Duration(hours*float64(time.Hour)))), false)
			for ; f.CatchUp.Done < int(hours); f.CatchUp.Done++ {
				f.CatchUp.Left--
				s.complete(f.Current)
			}
			f.Time = s.now
			s.read(hours - math.Floor(hours))
		})
		return s
	}
	s := newScene(sceneTime.Add(-time.Hour - 4*time.Second))
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
	for p := range s.ends { // the topic has records of former instances
		s.ends[p] = 1_204_511 + 317*int64(p%4)
	}
	last := source.SegmentAt(sceneHour.Add(-2 * time.Hour)) // is finalized while the next one is read
	s.join(source.SegmentAt(sceneHour.Add(-time.Hour)))
	s.state.Frontier.Completed = source.SegmentAt(last.Time().Add(-time.Hour))
	s.state.Frontier.Resolved = fmt.Sprintf("%d.0000000000", last.Time().Add(-15*time.Minute).UnixNano())
	live := func(minutes float64) {
		s.commit(int(1200+700*math.Sin(minutes/3)), time.Duration(110+40*math.Sin(minutes/5))*time.Second, true)
		if s.state.Frontier.Completed != last && s.now.After(last.Time().Add(80*time.Minute)) {
			s.complete(last)
		}
		s.read(1)
	}
	switch name {
	case "failing":
		s.run(sceneTime.Add(-100*time.Second), live)
		s.run(sceneTime, func(float64) {
			s.BrokerAnswered()
			const short = "reading log/01/2026/01/31/1200/00004.avro: 403 AuthorizationFailure"
			for lease, err := range []string{longError, short} {
				s.Active(int32(lease), bridge.Working)
				s.Failed(int32(lease), errors.New(err))
			}
			s.Requested("read", 403, time.Millisecond, 0, nil)
		})
	case "kafka-down": // after a seek that has skipped three segments, and a half
		began := sceneHour.Add(-8*time.Hour + 30*time.Minute)
		s.state.Frontier.Since = source.SegmentAt(began.Add(-76 * time.Minute))
		s.state.Frontier.Start = fmt.Sprintf("%d.0000000000", began.UnixNano())
		s.state.Frontier.Earlier = []offsets.Stretch{{To: source.SegmentAt(sceneHour.Add(-12 * time.Hour))}}
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
		s.state.Cursors[p] = &offsets.Cursor{Segment: segment}
	}
	s.read(0.14)
	s.look()
}

// look reports the feed.
func (s *scene) look() {
	s.History(bridge.History{
		Newest: sceneHour.Add(-time.Hour), Headroom: s.state.Frontier.Current.Time().Sub(sceneOldest),
	})
}

// read puts the leases behind a part of the current segment.
func (s *scene) read(part float64) {
	for p, c := range s.state.Cursors[:3] {
		at := source.ShardPosition{Chunk: int(part * 4), Offset: int64(part*97_204_318) + int64(21451*p)}
		c.Shards = map[string]source.ShardPosition{source.ShardName(p): at}
		c.Time, c.Listed, c.Ahead = s.now, 100, int64(100*(1-part))
	}
}

// complete reports that a segment is delivered, and names the next one.
func (s *scene) complete(segment source.Segment) {
	f := s.state.Frontier
	f.Completed, f.Current = segment, source.SegmentAt(segment.Time().Add(time.Hour))
	f.Resolved = fmt.Sprintf("%d.0000000000", f.Current.Time().Add(-15*time.Minute).UnixNano())
	for _, c := range s.state.Cursors[:3] {
		c.Segment = f.Current
	}
	for p := range s.ends {
		s.wrote(int32(p), 1)
	}
	s.Completed(bridge.Completion{Markers: len(s.ends)})
	s.look()
}

// wrote reports a transaction that has written to a partition. Its end takes an offset, too.
func (s *scene) wrote(p int32, records int) {
	s.Wrote("blob-changes", p, records)
	s.ends[p] += int64(records) + 1
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
	events /= 3
	s.seen += 3 * events
	for p := range int32(3) {
		c := bridge.Commit{
			Lease: p, Read: events, Emitted: events, Bytes: events * 640, Seen: s.now.Add(-age), Drained: drained,
		}
		even := events * int(49+p) / 100
		s.wrote(2*p, even)
		s.wrote(2*p+1, events-even)
		if drained {
			c.Published = s.now.Add(-2 * time.Second)
		}
		c.Recent = s.records(p, age)
		s.Committed(c)
		s.state.Cursors[p].Counts.Read += int64(events)
		s.state.Cursors[p].Counts.Emitted += int64(events)
		if drained {
			s.Active(p, bridge.Drained)
		}
	}
}

// records are the last ones of a transaction.
func (s *scene) records(lease int32, age time.Duration) *pipeline.Recent {
	r := new(pipeline.Recent)
	for i, path := range [][]string{
		{"invoices/2026/INV-1042, page 1.pdf", "photos/2026/summer/IMG_4587.jpg", "uploads/video-21.mp4.part"},
		{"reports/2026/sales by region.csv", "$web/index.html",
			"backups/db.20260131130031.20260131130032.full.20260131130033.bak"},
		{"videos/2026/video-21.mp4", "photos/originals/2026/01/31/cat-on-the-roof.jpg", "invoices/2026/INV-1043.pdf"},
	}[lease] {
		at := 2*lease + int32(i%2)
		kind, size := "BlobCreated", 640+11*i
		if i == 2 && lease == 0 {
			kind, size = "BlobDeleted", 127
		}
		r.Keep(&kgo.Record{
			Topic: "blob-changes", Partition: at, Offset: s.ends[at] - 2 - int64(2-i)/2, Key: []byte(`["` + path + `"]`),
			Value: make([]byte, size), Timestamp: s.now.Add(-age - time.Duration(8-3*int(lease)-i)*time.Second),
			Headers: []kgo.RecordHeader{{Key: "ce_type", Value: []byte("Microsoft.Storage." + kind)}},
		})
	}
	return r
}
