package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/offsets"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// The account changes before every request of the scan, and the feed says so late; afterwards the topic is the account.
// No marker is below the end of the scan, and none is missing above.
func TestTableIsTheAccount(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 5, 700)
	w.change(200)
	w.publish(true)
	w.next()
	w.store.Size = func(limit int) int { return min(limit, 50) }
	w.store.Before = func(context.Context, string, inventory.Query) error {
		w.change(7)
		w.publish(true)
		return nil
	}
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan = ScanYes
	live(t, o)
	scanned := awaitState(t, o, "the scan is done", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Done
	})
	for range 3 {
		w.change(50)
		w.publish(false)
		w.next()
	}
	awaitState(t, o, "all is delivered", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Completed.String() >= "2026/01/01/0300"
	})
	var marks []string
	w.compare(c, noted(func(r verify.Record) {
		if r.Key == nil {
			marks = append(marks, string(r.Value))
		}
	}))
	if len(marks) == 0 {
		t.Error("no marker")
	}
	listed := scanned.Frontier.Scan.Listed
	for _, m := range marks {
		var marker struct{ Resolved string }
		if json.Unmarshal([]byte(m), &marker); marker.Resolved < listed {
			t.Errorf("a marker at %s, and the scan ended at %s", marker.Resolved, listed)
		}
	}
}

// Retention removes a segment with writes and deletions that nobody has read. With RescanGaps the bridge repairs the
// topic by itself, also while the last segment is open for good.
func TestRescanRepairsGap(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, 300)
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan, o.Feed.SkipGaps, o.Feed.RescanGaps, o.Pace.BundleBytes = ScanYes, true, true, 0
	w.store.Size = func(limit int) int { return min(limit, 40) }
	stop := run(t, o)
	w.change(100)
	w.publish(false)
	w.next()
	awaitState(t, o, "the first segment is complete", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.Current.String() == "2026/01/01/0100"
	})
	w.change(100)
	w.publish(false)
	awaitDrained(t, o, w)
	stop()

	lost := w.segment()
	w.change(300)
	w.publish(false)
	w.next()
	w.change(20)
	w.publish(false)
	w.memory.remove("idx/segments/2026/01/01/0000")
	w.memory.remove("idx/segments/" + lost)
	for shard := range 3 {
		w.memory.remove(fmt.Sprintf("log/%02d/%s", shard, lost))
	}
	w.store.Before = func(_ context.Context, op string, _ inventory.Query) error {
		if op == "list" {
			w.change(2)
			w.publish(true)
		}
		return nil
	}
	live(t, o)
	s := awaitState(t, o, "the scan is done", func(s *offsets.State) bool {
		return scanOf(s) != nil && !scanOf(s).Initial && scanOf(s).Done
	})
	if s.Frontier.Scan.Deleted == 0 || s.Frontier.Gaps != 1 {
		t.Errorf("%+v after %d gaps", s.Frontier.Scan, s.Frontier.Gaps)
	}
	w.publish(false)
	awaitDrained(t, o, w)
	w.compare(c)
}

// awaitDrained returns when the open segment is delivered as far as it goes.
func awaitDrained(t *testing.T, o Options, w *world) {
	t.Helper()
	awaitState(t, o, "the open segment is drained", func(s *offsets.State) bool {
		if s.Frontier == nil || s.Frontier.Current.String() != w.segment() {
			return false
		}
		w.memory.mu.Lock()
		defer w.memory.mu.Unlock()
		for name, b := range w.memory.blobs {
			var shard, chunk int
			rest, ok := strings.CutPrefix(name, "log/")
			if !ok || !strings.Contains(name, w.segment()) {
				continue
			}
			if _, err := fmt.Sscanf(rest, "%02d/"+w.segment()+"/%05d.avro", &shard, &chunk); err != nil {
				t.Error(name, err)
			}
			at := s.Cursor(int32(shard%int(o.Kafka.Leases))).At(s.Frontier.Current, shard)
			if at.Chunk != chunk || at.Offset != int64(len(b)) {
				return false
			}
		}
		return true
	})
}

// A scan that is requested runs beside the delivery, in rounds, and can be cancelled.
func TestRequestedScan(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 400)
	c := broker(t)
	o := w.options(c)
	w.change(100)
	w.publish(false)
	live(t, o)
	awaitDrained(t, o, w)
	cl, err := kgo.NewClient(o.Kafka.Client...)
	must(t, err)
	defer cl.Close()
	ask := func(r offsets.Request) {
		r.ID, r.Time = offsets.ScanID(time.Now()), time.Now()
		must(t, offsets.Ask(t.Context(), cl, o.offsetsTopic(), r))
	}
	ask(offsets.Request{Container: "c1"})
	awaitState(t, o, "the scan of a container is done", func(s *offsets.State) bool {
		f := scanOf(s)
		return f != nil && f.Done && !f.Cancelled && f.Rows == int64(w.account.Len("c1"))
	})
	ask(offsets.Request{Sweep: true})
	awaitState(t, o, "the scan of all is done", func(s *offsets.State) bool {
		f := scanOf(s)
		return f != nil && f.Done && f.Sweep && f.Rows == int64(len(w.account.Blobs()))
	})
	w.compare(c)

	w.store.Before = func(ctx context.Context, op string, _ inventory.Query) error {
		if op == "list" {
			<-ctx.Done()
		}
		return ctx.Err()
	}
	ask(offsets.Request{})
	s := awaitState(t, o, "a scan that gets no answer", func(s *offsets.State) bool {
		return scanOf(s).Active()
	})
	must(t, offsets.Ask(t.Context(), cl, o.offsetsTopic(), offsets.Request{ID: s.Frontier.Scan.ID, Time: time.Now(),
		Cancel: true}))
	awaitState(t, o, "it is cancelled", func(s *offsets.State) bool { return scanOf(s) != nil && scanOf(s).Cancelled })
	w.change(10)
	w.publish(false)
	awaitDrained(t, o, w)
	w.compare(c)
}
