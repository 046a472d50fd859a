package bridge

import (
	"context"
	"testing"
	"time"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// listsLate makes the listing end hours behind the feed.
func (w *world) listsLate() {
	w.store.Before = func(context.Context, string, inventory.Query) error {
		w.clock.Add(int64(time.Hour))
		return nil
	}
}

// Partitions that a topic gets after the rows of an initial scan are used behind the first marker: else the events of a
// key would come in another partition than its row, and no marker would stand between them (I5). Where markers are off,
// keys stay where they are.
func TestPartitionsAddedBehindRows(t *testing.T) {
	t.Parallel()
	for name, markers := range map[string]envelope.Markers{
		"inline": envelope.MarkersInline, "off": envelope.MarkersOff,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2, 50)
			w.listsLate()
			c := broker(t)
			o := w.options(c)
			o.Feed.InitialScan, o.Records.Markers, o.Pace.BundleBytes = ScanYes, markers, 0
			live(t, o)
			awaitState(t, o, "the scan is done", func(s *offsets.State) bool {
				return scanOf(s) != nil && scanOf(s).Done
			})
			_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
			must(t, err)
			if !o.marks() {
				for range 3 {
					w.next()
					if n := w.awaitNamed(o).Topics[topic]; n != partitions {
						t.Errorf("without markers the topic has %d partitions", n)
					}
				}
				return
			}
			w.awaitPartitions(o, partitions+3, func(f *offsets.Frontier) {
				if n := f.Topics[topic]; f.Resolved == "" && n != partitions {
					t.Errorf("without a marker the topic has %d partitions", n)
				}
			})
		})
	}
}

// The same of segments that are delivered in bundles. A bundle below the end of the listing has no marker, and one that
// passes it takes the counts with its first marker.
func TestPartitionsAddedBehindRowsInBundles(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 50)
	w.listsLate()
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan, o.Pace.BundleBytes, o.Once = ScanYes, 1<<20, true
	must(t, runOnce(t, o))
	_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
	must(t, err)
	frontier := func() *offsets.Frontier {
		return awaitState(t, o, "a frontier", func(s *offsets.State) bool { return s.Frontier != nil }).Frontier
	}
	unmarked := 0
	for f := frontier(); f.Topics[topic] == partitions && unmarked < 9; f = frontier() {
		if f.Resolved == "" {
			unmarked++
		}
		for range 3 {
			w.change(20)
			w.publish(false)
			w.next()
		}
		must(t, runOnce(t, o))
	}
	w.change(60)
	w.publish(false)
	must(t, runOnce(t, o))
	if consume(t, c, newLanes()); unmarked < 2 || unmarked == 9 {
		t.Errorf("the new partitions are used behind %d states without a marker", unmarked)
	}
}

// awaitPartitions ends segments until the topic has want partitions in the frontier. It calls check for the frontier of
// each segment.
func (w *world) awaitPartitions(o Options, want int32, check func(*offsets.Frontier)) {
	w.t.Helper()
	for range 24 {
		w.next()
		f := w.awaitNamed(o)
		check(f)
		if f.Topics[topic] == want {
			return
		}
	}
	w.t.Fatal("the new partitions are not used")
}

// awaitNamed returns the frontier that names the open segment.
func (w *world) awaitNamed(o Options) *offsets.Frontier {
	w.t.Helper()
	return awaitState(w.t, o, "the next segment is named", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Current.String() == w.segment()
	}).Frontier
}

// The marker for the end time is no exception: the rows of an initial scan that ended later show later states.
func TestNoMarkerForAnEndBehindRows(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 50)
	w.next()
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan = ScanYes
	o.Feed.End = envelope.Timestamp{Wall: w.clock.Load() - int64(30*time.Minute)} // before the open segment
	must(t, runOnce(t, o))
	awaitState(t, o, "it has ended", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Ended && s.Frontier.Resolved == ""
	})
	w.compare(c, noted(func(r verify.Record) {
		if r.Key == nil {
			t.Errorf("a marker: %s", r.Value)
		}
	}))
}
