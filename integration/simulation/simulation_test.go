//go:build synctests && !mutation

package simulation

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"testing"
	"time"

	"blobfeed/internal/testing/protocol"
)

// SIM_SEEDS seeds from SIM_FIRST on, or as many as SIM_DURATION leaves time for, or SIM_SEED alone, SIM_REPEAT times,
// with its log.
func TestSeeds(t *testing.T) {
	first, given := variable(t, "SIM_SEED", 0)
	if duration := os.Getenv("SIM_DURATION"); duration != "" {
		d, err := time.ParseDuration(duration)
		if err != nil {
			t.Fatalf("SIM_DURATION=%q: want a duration such as 10m", duration)
		}
		if !given {
			first = rand.Uint64N(1 << 40)
		}
		t.Logf("from SIM_SEED=%d on", first)
		for began, n := time.Now(), uint64(50); time.Since(began) < d; first += n {
			t.Run(fmt.Sprint("from ", first), func(t *testing.T) { several(t, first, n) })
		}
		return
	}
	if given {
		repeat, _ := variable(t, "SIM_REPEAT", 1)
		for range repeat {
			if r, log := simulate(t, NewPlan(first)); !t.Failed() {
				t.Logf("%v\n%s", NewPlan(first), log)
				t.Logf("%s of virtual time, %d records, %d bytes held at most", r.Virtual, r.Records, r.Peak)
				report(t, first, r)
			}
		}
		return
	}
	first, _ = variable(t, "SIM_FIRST", 1)
	n, _ := variable(t, "SIM_SEEDS", 120)
	several(t, first, n)
}

// TestScanSeeds is TestSeeds with scans of an account. SIM_SCAN_SEED alone replays one, with its log.
func TestScanSeeds(t *testing.T) {
	if seed, given := variable(t, "SIM_SCAN_SEED", 0); given {
		r, log := simulate(t, NewScanPlan(seed))
		t.Logf("%v\n%s", NewScanPlan(seed), log)
		report(t, seed, r)
		return
	}
	first, _ := variable(t, "SIM_FIRST", 1)
	n, _ := variable(t, "SIM_SEEDS", 120)
	run(t, first, n, NewScanPlan)
}

// TestTraceSeeds follows what the bridge does with the model of the protocol. SIM_TRACE_SEED alone replays one seed.
func TestTraceSeeds(t *testing.T) {
	if seed, given := variable(t, "SIM_TRACE_SEED", 0); given {
		r, log := simulate(t, NewTracePlan(seed))
		t.Logf("%v\n%s", NewTracePlan(seed), log)
		report(t, seed, r)
		return
	}
	first, _ := variable(t, "SIM_FIRST", 1)
	n, _ := variable(t, "SIM_SEEDS", 120)
	run(t, first, n, NewTracePlan)
}

// The whole program survives what finds the mutants.
func TestScenarios(t *testing.T) {
	seeds := uint64(10)
	if testing.Short() {
		seeds = 2
	}
	for mutation := range scenarios {
		t.Run(mutation, func(t *testing.T) {
			run(t, 0, seeds, func(seed uint64) *Plan { return mutantPlan(seed, mutation) })
		})
	}
}

// A correct trace in which one transaction is missing, comes twice, or has lost its records or markers, is rejected.
func TestFollowRejects(t *testing.T) {
	const seeds = 20
	bundles, scans := 0, 0
	for seed := range uint64(seeds) {
		r, _ := simulate(t, NewTracePlan(seed))
		report(t, seed, r)
		verbs := func(e protocol.Event) bool { return e.Kind == protocol.Verb }
		if slices.ContainsFunc(r.Trace.Events, verbs) {
			continue // what a seek makes void leaves no trace
		}
		for k, e := range r.Trace.Events {
			if e.Kind == protocol.Removed || len(e.Shards) == 0 && e.Markers == 0 {
				continue // a document that says what stands is no harm
			}
			if e.Markers > 1 {
				bundles++
			}
			stripped, halved := e, e // as if a block of it were not there
			stripped.Shards, stripped.Markers = nil, 0
			halved.Shards, halved.Markers = e.Shards[:len(e.Shards)/2], e.Markers/2
			for what, instead := range map[string][]protocol.Event{
				"removed": nil, "doubled": {e, e}, "stripped": {stripped}, "halved": {halved},
			} {
				bad := r.Trace
				bad.Events = slices.Replace(slices.Clone(bad.Events), k, k+1, instead...)
				if protocol.Follow(bad) == nil {
					t.Errorf("seed %d: event %d is %s, and nobody notices: %s", seed, k, what, e)
				}
			}
		}
		for k, e := range r.Scan.Events {
			if len(e.Records) == 0 {
				continue
			}
			scans++
			stripped, other := e, e
			stripped.Records, other.Records = nil, slices.Clone(e.Records)
			other.Records[0].Content++ // what a blob will be
			for what, instead := range map[string][]protocol.ScanEvent{
				"removed": nil, "doubled": {e, e}, "stripped": {stripped}, "of another time": {other},
			} {
				if e.Records[0].OfScan && (what == "removed" || what == "stripped") {
					continue // the account could have been asked when there was nothing to say of the blob
				}
				bad := r.Scan
				bad.Events = slices.Replace(slices.Clone(bad.Events), k, k+1, instead...)
				if protocol.FollowScan(bad) == nil {
					t.Errorf("seed %d: event %d is %s, and nobody notices: %s", seed, k, what, e)
				}
			}
		}
	}
	if bundles == 0 || scans == 0 {
		t.Errorf("%d bundles and %d transactions with scans", bundles, scans)
	}
}

// The same of traces in which retention removes segments, at once or blob by blob: a loss is not recorded, or found
// before the manifest is gone; a block is delivered whose chunk was gone before anybody could read it.
func TestFollowRejectsLoss(t *testing.T) {
	seeds := uint64(400)
	if testing.Short() {
		seeds = 120
	}
	noticed := map[string]int{}
	for seed := range seeds {
		p := NewTracePlan(seed)
		if p.Retention != EatsUnread {
			continue
		}
		r, _ := simulate(t, p)
		report(t, seed, r)
		events := r.Trace.Events
		rejected := func(what string, k int, bad []protocol.Event) {
			wrong := r.Trace
			wrong.Events = bad
			if protocol.Follow(wrong) == nil {
				t.Errorf("seed %d: %s at event %d, and nobody notices: %s", seed, what, k, events[k])
			}
			noticed[what]++
		}
		for k, e := range events {
			silent := e
			silent.Document.Gap, silent.Document.Loses = false, false
			if silent.Document != e.Document && e.Kind == protocol.Commits {
				rejected("a loss that is not recorded", k, slices.Replace(slices.Clone(events), k, k+1, silent))
			}
			n := e.Document.Segment
			if e.Kind == protocol.Commits && e.Document.Gap {
				goes := func(e protocol.Event) bool { return e.Kind == protocol.Removed && e.Segment >= n }
				bad := slices.DeleteFunc(slices.Clone(events[:k]), goes)
				bad = append(bad, e)
				for _, early := range events[:k] {
					if goes(early) {
						bad = append(bad, early)
					}
				}
				rejected("a loss before there is one", k, append(bad, events[k+1:]...))
				if slices.ContainsFunc(events, func(d protocol.Event) bool {
					return slices.Contains(d.Shards, protocol.Block{Segment: n, Shard: uint8(1 - e.Lease)}) &&
						d.Kind == protocol.Commits
				}) {
					noticed["a gap within a segment"]++
				}
			}
			named := slices.IndexFunc(events, func(d protocol.Event) bool { return d.Document.Current == n })
			if e.Kind == protocol.Commits && len(e.Shards) == 1 && e.Shards[0].Segment == n && named >= 0 {
				goes := protocol.Event{Kind: protocol.Removed, Shards: e.Shards}
				for _, early := range events[:named] {
					goes.Segment = max(goes.Segment, early.Segment)
				}
				rejected("a block without its chunk", k, slices.Insert(slices.Clone(events), named, goes))
			}
		}
	}
	t.Log(noticed)
	for _, what := range []string{
		"a loss that is not recorded", "a loss before there is one", "a gap within a segment", "a block without its chunk",
	} {
		if noticed[what] == 0 {
			t.Errorf("no trace with %s", what)
		}
	}
}

// The same without transactions: records are missing before the document that covers them, or come behind it, or behind
// the owner record of another acquisition; a marker comes before the frontier that owes it, or never; a document that
// others build on is missing.
func TestFollowRejectsLeast(t *testing.T) {
	const seeds = 80
	noticed := map[string]int{}
	for seed := uint64(3); seed < seeds; seed += 4 {
		r, _ := simulate(t, NewTracePlan(seed))
		report(t, seed, r)
		events := r.Least.Events
		moved := slices.ContainsFunc(events, func(e protocol.LeastEvent) bool { // what a seek makes void is no harm
			return e.Kind == protocol.Owns && e.Instance == ""
		})
		rejected := func(what string, k int, bad []protocol.LeastEvent) {
			if protocol.FollowLeast(protocol.LeastTrace{Bundles: r.Least.Bundles, Events: bad}) == nil {
				t.Errorf("seed %d: event %d is %s, and nobody notices: %s", seed, k, what, events[k])
			}
			noticed[what]++
		}
		without := func(k int) []protocol.LeastEvent { return slices.Delete(slices.Clone(events), k, k+1) }
		for k, e := range events {
			if e.Instance == "" || e.Kind == protocol.Starts || e.Kind == protocol.Acquired || e.Kind == protocol.Owns {
				continue
			}
			doc := func(d protocol.LeastEvent) bool {
				covers := len(e.Whole) == 0 || d.Document.IsFrontier || d.Document.Segment == e.Whole[0].Segment
				return d.Kind == protocol.Writes && d.Lease == e.Lease && d.Term == e.Term && covers
			}
			next := slices.IndexFunc(events[k+1:], doc) + k + 1
			if e.Kind == protocol.Delivers && len(e.Whole) > 0 && next > k {
				rejected("events that are missing", k, without(k))
				rejected("events behind their document", k, slices.Insert(without(k), next, e))
			}
			if e.Kind == protocol.Marks && e.Last && next > k {
				rejected("a marker that is missing", k, without(k))
				rejected("a marker that is paid for before it is written", k, slices.Insert(without(k), next, e))
			}
			for before := k - 1; e.Kind == protocol.Marks && before >= 0; before-- {
				if d := events[before]; doc(d) && d.Document.IsFrontier && d.Document.Owed {
					rejected("a marker before its frontier", k, slices.Insert(without(k), before, e))
				}
			}
			if e.Kind == protocol.Writes && (e.Document.Done || e.Document.Current > 0) && !moved &&
				!slices.ContainsFunc(without(k), func(d protocol.LeastEvent) bool { return says(d, e) }) {
				rejected("a document that is missing", k, without(k))
			}
			owns := func(d protocol.LeastEvent) bool {
				return d.Kind == protocol.Owns && d.Lease == e.Lease && d.Instance != ""
			}
			if taken := slices.IndexFunc(events[k+1:], owns) + k + 1; taken > k && e.Kind != protocol.Finalized {
				rejected("of a former owner", k, slices.Insert(without(k), taken, e))
			}
		}
	}
	t.Log(noticed)
	for _, what := range []string{
		"events that are missing", "events behind their document", "a marker that is missing",
		"a marker that is paid for before it is written", "a marker before its frontier", "a document that is missing",
		"of a former owner",
	} {
		if noticed[what] == 0 {
			t.Errorf("no trace with %s", what)
		}
	}
}

// says reports whether two events are of documents that say the same.
func says(d, e protocol.LeastEvent) bool {
	return d.Kind == e.Kind && d.Lease == e.Lease && d.Document.Document == e.Document.Document
}

func several(t *testing.T, first, n uint64) { run(t, first, n, NewPlan) }

func run(t *testing.T, first, n uint64, plan func(seed uint64) *Plan) {
	for seed := first; seed < first+n; seed++ {
		t.Run(fmt.Sprint(seed), func(t *testing.T) {
			t.Parallel()
			r, log := simulate(t, plan(seed))
			report(t, seed, r)
			if t.Failed() { // another run of the seed may pass: -artifacts keeps the log of this one
				text := fmt.Sprintf("%v\n%s\n", plan(seed), log)
				if err := os.WriteFile(filepath.Join(t.ArtifactDir(), "log"), []byte(text), 0o600); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// report fails the test with what is wrong.
func report(t *testing.T, seed uint64, r Result) {
	t.Helper()
	const most = 5
	for k, p := range r.Problems {
		if k == most {
			t.Errorf("and %d more", len(r.Problems)-k)
			break
		}
		t.Errorf("%s", p)
	}
	if len(r.Problems) > 0 {
		t.Logf("SIM_SEED=%d replays it", seed)
	}
}

func variable(t *testing.T, name string, otherwise uint64) (value uint64, given bool) {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise, false
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s=%q: want a number", name, text)
	}
	return n, true
}
