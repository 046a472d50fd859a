package simulation

import (
	"fmt"
	"slices"

	"blobfeed/verify"
)

// firsts checks what holds without transactions, where events may come again: those that come for the first time are in
// order and above the markers, markers never fall, and in the end every key's last record is of its newest event.
type firsts struct {
	judge    *judge
	resolved map[lane]string      // the last marker
	first    map[*expected]bool   // what came
	last     map[string]*expected // by key, the newest event that came
	newest   map[string]*expected // by key, the event of the last record
	failures []verify.Failure
}

func newFirsts(j *judge) *firsts {
	return &firsts{
		judge: j, resolved: map[lane]string{}, first: map[*expected]bool{},
		last: map[string]*expected{}, newest: map[string]*expected{},
	}
}

// Note implements verify.Validator.
func (f *firsts) Note(r verify.Record) {
	at := lane{r.Topic, r.Partition}
	fail := func(format string, args ...any) {
		f.failures = append(f.failures, verify.Failure{
			Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: string(r.Key),
			Problem: fmt.Sprintf(format, args...),
		})
	}
	if r.Key == nil {
		switch resolved := string(r.Header("resolved")); {
		case f.resolved[at] > resolved: // times have as many digits
			fail("the marker %s comes after %s", resolved, f.resolved[at])
		default:
			f.resolved[at] = resolved
		}
		return
	}
	e := f.judge.at[string(r.Header("position"))]
	if e == nil {
		return // Complete says so
	}
	key := string(r.Key)
	f.newest[key] = e
	if f.first[e] {
		return
	}
	f.first[e] = true
	if updated := string(r.Header("updated")); updated <= f.resolved[at] {
		fail("event %s comes for the first time with updated %s, after the marker %s", e.Position(), updated,
			f.resolved[at])
	}
	if last := f.last[key]; last != nil && last.Seq > e.Seq && f.judge.grown == 0 {
		fail("event %s comes for the first time after %s", e.Position(), last.Position())
		return
	}
	f.last[key] = e
}

// Failures implements verify.Validator.
func (f *firsts) Failures() []verify.Failure {
	all := slices.Clone(f.failures)
	for key, last := range f.last {
		if now := f.newest[key]; now != last && f.judge.grown == 0 {
			problem := fmt.Sprintf("the last record is of event %s, the newest event is %s", now.Position(),
				last.Position())
			all = append(all, verify.Failure{Key: key, Problem: problem})
		}
	}
	return all
}
