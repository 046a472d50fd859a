package soak

import (
	"fmt"
	"slices"
	"time"
)

// Span is a time in which an alert's expression was true without a break.
type Span struct{ From, To time.Time }

func (s Span) String() string {
	return fmt.Sprintf("%s to %s", s.From.UTC().Format(time.TimeOnly), s.To.UTC().Format(time.TimeOnly))
}

// Alert is when one was true.
type Alert struct {
	Name   string
	True   []Span // pending or firing: its expression holds
	Firing []Span
}

// Expectation says when an alert's expression holds because of a blocked broker: in the block, without a break, and at
// no other time. What has none never holds.
type Expectation struct {
	Within time.Duration // of the block's begin it holds
	Clear  time.Duration // after the block's end it does not hold any more
	For    time.Duration // of the rule: what must hold for so long of a block fires
	Why    string
}

// alerts makes Alerts of the series of ALERTS.
func alerts(series []Series) (all []Alert) {
	byName := map[string]*Alert{}
	for _, s := range series {
		name := s.Labels["alertname"]
		if byName[name] == nil {
			byName[name] = &Alert{Name: name}
		}
		a := byName[name]
		own := spans(s.Samples)
		a.True = append(a.True, own...)
		if s.Labels["alertstate"] == "firing" {
			a.Firing = append(a.Firing, own...)
		}
	}
	for _, a := range byName {
		a.True, a.Firing = join(a.True), join(a.Firing)
		all = append(all, *a)
	}
	slices.SortFunc(all, func(a, b Alert) int { return a.True[0].From.Compare(b.True[0].From) })
	return all
}

// spans finds the breaks.
func spans(samples []Sample) (all []Span) {
	for _, s := range samples {
		all = append(all, Span{s.At, s.At})
	}
	return join(all)
}

// join makes one of spans that follow each other: an alert that fires is not pending any more.
func join(all []Span) (joined []Span) {
	slices.SortFunc(all, func(a, b Span) int { return a.From.Compare(b.From) })
	for _, s := range all {
		if n := len(joined); n > 0 && s.From.Sub(joined[n-1].To) <= evaluation*3/2 {
			if s.To.After(joined[n-1].To) {
				joined[n-1].To = s.To
			}
			continue
		}
		joined = append(joined, s)
	}
	return joined
}

// Judge returns what is wrong with alerts, given what was expected of a block.
func Judge(all []Alert, block Span, expected map[string]Expectation) (failures []string) {
	fail := func(format string, args ...any) { failures = append(failures, fmt.Sprintf(format, args...)) }
	seen := map[string]Alert{}
	for _, a := range all {
		seen[a.Name] = a
		e, is := expected[a.Name]
		for _, s := range a.True {
			if !is || s.From.Before(block.From) || s.To.After(block.To.Add(e.Clear)) {
				fail("%s held from %v; the block was %v", a.Name, s, block)
			}
		}
	}
	for name, e := range expected {
		a := seen[name]
		from := block.From.Add(e.Within)
		holds := func(spans []Span, from time.Time) bool {
			return slices.ContainsFunc(spans, func(s Span) bool {
				return !s.From.After(from) && !s.To.Before(block.To.Add(-evaluation))
			})
		}
		if from.Before(block.To) && !holds(a.True, from) {
			fail("%s did not hold in the block, %v, from %s after its begin on: %v. It should: %s", name, block,
				e.Within, a.True, e.Why)
		}
		// One more evaluation than it takes at most.
		if fires := from.Add(e.For + 2*evaluation); fires.Before(block.To) && !holds(a.Firing, fires) {
			fail("%s did not fire in the block, %v, after %s: %v", name, block, e.Within+e.For, a.Firing)
		}
	}
	slices.Sort(failures)
	return failures
}
