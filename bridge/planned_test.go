package bridge

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"blobfeed/offsets"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// A plan counts what a sweep then does, and writes nothing. With little memory, it estimates that from a part of the
// keys. After growth, a key may have a row in two partitions: the sweep asks for both at most.
func TestPlanOfASweep(t *testing.T) {
	t.Parallel()
	for name, grown := range map[string]bool{"the same partitions": false, "more partitions": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w, c, o := afterScan(t, 2, 800, func(*Options) {})
			if grown {
				_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
				must(t, err)
				w.awaitPartitions(o, partitions+3, func(*offsets.Frontier) {})
				ask(t, o, offsets.Request{ID: "rows", Time: time.Now()})
				awaitState(t, o, "there are rows in the new partitions", isDone("rows"))
			}
			w.unfed(300)
			for _, part := range []offsets.Scan{{Container: "c1"}, {Prefix: "no such/"}, {}} {
				w.comparePlan(o, &part, grown)
			}
		})
	}
}

// comparePlan plans the sweep of a part of the account, and has it done.
func (w *world) comparePlan(o Options, part *offsets.Scan, grown bool) {
	t := w.t
	state := awaitState(t, o, "a frontier", func(s *offsets.State) bool { return s.Frontier != nil })
	plan, err := PlanSweep(t.Context(), &o, part, state.Frontier.Topics)
	must(t, err)
	memory := 8 * 600
	if grown {
		memory *= 2
	}
	estimate, err := planSweep(t.Context(), &o, part, state.Frontier.Topics, memory)
	must(t, err)
	var heads, pages atomic.Int64
	w.store.Before = func(_ context.Context, op string, q inventory.Query) error {
		switch {
		case op == "head":
			heads.Add(1)
		case op == "list" && q.Max > 1:
			pages.Add(1)
		}
		return nil
	}
	id := "sweep " + part.Container + part.Prefix
	ask(t, o, offsets.Request{ID: id, Time: time.Now(), Sweep: true, Container: part.Container, Prefix: part.Prefix})
	deleted := scanOf(awaitState(t, o, "the sweep is done", isDone(id))).Deleted
	w.store.Before = nil
	right := plan.Deletions == deleted && plan.Heads == heads.Load()
	if grown {
		right = plan.Deletions >= deleted && plan.Heads >= heads.Load() && deleted >= plan.Deletions/2
	}
	if !right || plan.Requests != pages.Load() || plan.Sample != 1 {
		t.Errorf("%s: the plan was %+v, and the sweep has %d deletions with %d HEAD requests of %d pages", id, *plan,
			deleted, heads.Load(), pages.Load())
	}
	// A sample of a quarter at least, by random hashes: its standard deviation is 12 % of 300, and 10 % of 800 of
	// which two are always together. What is let through is more than five times that.
	if n := plan.Deletions; estimate.Deletions < n/3 || estimate.Deletions > n*5/3 || n > 0 && estimate.Sample < 2 {
		t.Errorf("%s: the estimate is %+v, the plan %+v", id, *estimate, *plan)
	}
}

// A sweep stops before it writes more deletions than it may, however they are spread over the leases, and says so. With
// a higher limit, another one writes the rest.
func TestSweepStops(t *testing.T) {
	t.Parallel()
	w, c, o := afterScan(t, 2, 100, func(o *Options) { o.Kafka.Leases = 2 })
	w.unfed(30)
	deleted := int64(0)
	for _, step := range []struct {
		id          string
		most, wants int64
		stops       bool
	}{{"one", 1, 1, true}, {"some", 40, 40, true}, {"the rest", 19, 19, false}, {"nothing", 1, 0, false}} {
		ask(t, o, offsets.Request{ID: step.id, Time: time.Now(), Sweep: true, MaxDeletions: step.most})
		s := awaitState(t, o, "the sweep is over", isDone(step.id))
		if r := scanOf(s).ScanResult; r.Deleted != step.wants || r.Stopped != step.stops || r.LeftOut != "" {
			t.Errorf("%s: %+v", step.id, r)
		}
		deleted += scanOf(s).Deleted
	}
	enc, err := o.Records.Encoder(t.Context(), topic)
	must(t, err)
	found := 0
	consume(t, c, noted(func(r verify.Record) {
		if r.Scanned() && enc.Deletes(r.Value) {
			found++
		}
	}))
	if deleted != 60 || found != 60 {
		t.Errorf("%d deletions by the state, %d in the topic", deleted, found)
	}
	w.compare(c)
}
