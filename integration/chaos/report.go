//go:build unix

package chaos

import (
	"fmt"
	"strings"
	"time"
)

// Report is what a run did and found.
type Report struct {
	Seed     uint64
	Took     time.Duration
	Faults   map[string]int // by kind, cuts by mode
	Segments int
	Summary  Summary
	Moves    Moves
	Scans    int // that were accepted

	Half, Most, Longest time.Duration // delays: of half the events, of 99 of 100, of all
	Stalls              int
	Stalled, Worst      time.Duration
	Rest                time.Duration // from the last fault's end until everything was there

	Failures []string // nothing may be here
}

func (r *run) report(took time.Duration) *Report {
	p := &Report{
		Seed: r.Seed, Took: took, Faults: map[string]int{}, Segments: r.feed.Summary().Finalized,
		Summary: r.judge.Summary(), Moves: r.judge.Moves(), Failures: r.failures, Scans: int(r.scans.Load()),
	}
	for _, f := range r.plan {
		name := string(f.Kind)
		if f.Kind == Cut {
			name += " " + f.Mode.String()
		}
		p.Faults[name]++
	}
	p.Rest = r.rest
	p.Half, p.Most, p.Longest = r.judge.Delays()
	p.Stalls, p.Stalled, p.Worst = r.judge.Stalls()
	if !p.Summary.OK() {
		p.Failures = append(p.Failures, "a check of the summary")
	}
	return p
}

func (p *Report) String() string {
	var b strings.Builder
	n := 0
	for _, count := range p.Faults {
		n += count
	}
	round := func(d time.Duration) time.Duration { return d.Round(10 * time.Millisecond) }
	fmt.Fprintf(&b, "seed %d: %d faults in %s: %v\n", p.Seed, n, p.Took.Round(time.Second), p.Faults)
	fmt.Fprintf(&b, "%d segments, %s", p.Segments, p.Summary)
	fmt.Fprintf(&b, "%s; %d scans\n", p.Moves, p.Scans)
	fmt.Fprintf(&b, "from the feed to a reader: half within %s, 99%% within %s, all within %s\n", round(p.Half),
		round(p.Most), round(p.Longest))
	fmt.Fprintf(&b, "nothing came for more than %s %d times, %s in all, %s at most\n", stalled, p.Stalls,
		round(p.Stalled), round(p.Worst))
	fmt.Fprintf(&b, "everything was there %s after the last fault was over\n", round(p.Rest))
	for _, f := range p.Failures {
		fmt.Fprintf(&b, "FAILED: %s\n", f)
	}
	return b.String()
}
