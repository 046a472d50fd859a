//go:build !race

package protocol

import (
	"os"
	"testing"
)

// limit is when a walk is cut. A short run walks only the first states of a situation that should be clean, which are
// the nearest ones, and leaves out the dead ends of those that are larger.
const limit, shortLimit = 3_000_000, 20_000

func TestExactClean(t *testing.T) {
	for _, sit := range exactSituations() {
		if sit.large && os.Getenv("PROTOCOL_FULL") == "" {
			continue
		}
		t.Run(sit.name, func(t *testing.T) {
			t.Parallel()
			check(t, &exact{allExactRules(), sit}, "")
		})
	}
}

// TestExactToday finds, in the protocol before these rules, what was wrong with it.
func TestExactToday(t *testing.T) {
	for _, c := range []struct{ situation, broken string }{
		{"retention, ON_GAP=fail", exactNames[staleLoss]},
		{"retention, ON_GAP=fail", exactNames[falseLoss]},
		{"bundles, a fault", deadEnd},
		{"retention, ON_GAP=continue", exactNames[order]},
		{"one chunk goes, ON_GAP=continue", deadEnd},
		{"growth of the state topic", exactNames[twice]},
		{"seek past damage", deadEnd},
		{"--once, two instances", exactNames[falseEnd]},
		{"seek back", exactNames[twice]},
	} {
		t.Run(c.situation+": "+c.broken, func(t *testing.T) {
			t.Parallel()
			check(t, &exact{exactRules{retryFlush: true}, exactSituation(t, c.situation)}, c.broken)
		})
	}
}

// TestExactKnown finds what the rules do not exclude: an instance has lost its lease, and does not know. It finds the
// manifest gone twice, and ends, while the new owner, which has read the manifest before, delivers the chunks.
func TestExactKnown(t *testing.T) {
	x := &exact{allExactRules(), exactSituation(t, "retention piece by piece, ON_GAP=fail")}
	x.known = true
	check(t, x, exactNames[falseLoss])
}

// TestExactReverts takes one rule away, or makes one mistake, and finds what that breaks.
func TestExactReverts(t *testing.T) {
	for _, c := range []struct {
		revert            string
		do                func(*exactRules)
		situation, broken string
	}{
		{"R1 at the start", func(r *exactRules) { r.knownAtStart = false },
			"--once after a seek back", exactNames[falseEnd]},
		{"R1 after a fence", func(r *exactRules) { r.knownAfterFence = false }, "seek back", exactNames[twice]},
		{"R1 after a fence", func(r *exactRules) { r.knownAfterFence = false }, "seek back, bundles",
			exactNames[below]},
		{"R2f: intent first", func(r *exactRules) { r.phased = false }, "seek back", exactNames[twice]},
		{"R2f: intent first, reset", func(r *exactRules) { r.phased = false }, "reset", exactNames[twice]},
		{"R2f: intent first, void cursors before", func(r *exactRules) { r.phased, r.voidFirst = false, true },
			"seek back", deadEnd},
		{"R2f: fences after the intent", func(r *exactRules) { r.fenceOthers = false }, "seek back", exactNames[twice]},
		{"R2f: nothing after the intent", func(r *exactRules) { r.tidyLate = true }, "reset", exactNames[twice]},
		{"cursors of older epochs are void", func(r *exactRules) { r.keepCursors = true }, "seek back", deadEnd},
		{"waits end", func(r *exactRules) { r.waits = false }, "seek past damage", deadEnd},
		{"waits end: flush", func(r *exactRules) { r.retryFlush = true }, "bundles, a fault", deadEnd},
		{"J: a loss is found twice", func(r *exactRules) { r.ownLoss = false },
			"retention, ON_GAP=fail", exactNames[staleLoss]},
		{"J: a loss is found twice", func(r *exactRules) { r.ownLoss = false },
			"retention, ON_GAP=fail", exactNames[falseLoss]},
		{"J: completed by cursors", func(r *exactRules) { r.completeByCursors = false },
			"retention, ON_GAP=fail", exactNames[falseLoss]},
		{"J: completed by cursors", func(r *exactRules) { r.completeByCursors = false },
			"retention, ON_GAP=continue", deadEnd},
		{"G: gaps by cursors", func(r *exactRules) { r.gapByCursor = false },
			"retention, ON_GAP=continue", exactNames[order]},
		{"a chunk that is gone is listed again", func(r *exactRules) { r.listAgain = false },
			"one chunk goes, ON_GAP=continue", deadEnd},
		{"--once by committed state", func(r *exactRules) { r.onceByState = false },
			"--once, two instances", exactNames[falseEnd]},
		{"lease count frozen", func(r *exactRules) { r.frozen = false }, "growth of the state topic",
			exactNames[twice]},
		{"I2: one transaction", func(r *exactRules) { r.cursorApart = true }, "two faults", exactNames[twice]},
		{"I3: fence, then read", func(r *exactRules) { r.readFirst = true }, "two faults", exactNames[twice]},
		{"I6: the barrier", func(r *exactRules) { r.noBarrier = true }, "two faults", exactNames[below]},
		{"I8: the completed segment is there", func(r *exactRules) { r.trustListing = true },
			"retention of three segments, ON_GAP=fail", exactNames[skipped]},
		{"I8: a shard without a chunk", func(r *exactRules) { r.trustEmpty = true },
			"retention piece by piece, ON_GAP=continue", exactNames[skipped]},
		{"I8: the bundle follows", func(r *exactRules) { r.trustOrder = true },
			"bundles and retention, ON_GAP=continue", exactNames[skipped]},
		{"I8: the bundle is still there", func(r *exactRules) { r.trustBundle = true },
			"bundles and retention, ON_GAP=continue", exactNames[skipped]},
	} {
		t.Run(c.revert+": "+c.broken, func(t *testing.T) {
			t.Parallel()
			rules := allExactRules()
			c.do(&rules)
			check(t, &exact{rules, exactSituation(t, c.situation)}, c.broken)
		})
	}
}

func exactSituation(t *testing.T, name string) situation {
	for _, s := range exactSituations() {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("no situation %q", name)
	return situation{}
}

// check walks through a model and wants just the one invariant broken, or none.
func check[S comparable](t *testing.T, m model[S], want string) {
	t.Helper()
	most := limit
	if os.Getenv("PROTOCOL_FULL") != "" {
		most *= 5
	}
	short := testing.Short()
	if short {
		most = shortLimit
	}
	r := explore(m, most, want)
	_, found := r.first[want]
	verdict := map[bool]string{true: "found: " + want, false: "clean"}[found]
	t.Logf("%9d states %6.2f s  %s: %s", r.states(), r.took.Seconds(), t.Name(), verdict)
	switch {
	case found:
		t.Logf("broken: %s\n%s", want, r.trace(want))
	case want != "" && !(r.cut && short): // else make thorough finds it
		t.Errorf("%s is not broken, but %v", want, r.first)
	case want == "" && r.cut && !short:
		t.Errorf("more than %d states", most)
	}
	if want != "" {
		return
	}
	for name := range r.first {
		t.Errorf("broken: %s\n%s", name, r.trace(name))
	}
}
