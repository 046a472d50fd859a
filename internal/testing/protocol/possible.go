package protocol

import (
	"fmt"
	"maps"
	"slices"
)

// follows is the worker that is followed.
type follows struct {
	instance string
	lease    int
}

// possible are the states that fit what was seen so far, for each worker apart.
type possible[S comparable] struct {
	world  S          // what is committed; nobody is in it
	at     [2][]int64 // by lease: the offsets of the records in the log
	states map[follows]map[S]bool
	order  []follows

	// steps adds what a worker may do next, and whether others see it.
	steps func(s S, at follows, add func(t S, shown bool))
	// forget drops what only invariants need, which the topics show better.
	forget func(S) S
}

// begin adds a worker.
func (f *possible[S]) begin(at follows, s S) {
	f.order = append(f.order, at)
	f.states[at] = map[S]bool{s: true}
}

// hasRead reports whether a view has read as far as was seen.
func (f *possible[S]) hasRead(read [2]uint8, seen [2]int64) bool {
	for q, end := range seen {
		n, _ := slices.BinarySearch(f.at[q], end)
		if int(read[q]) != n {
			return false
		}
	}
	return true
}

// take takes the steps of a worker that lead to what was seen. They are the steps that others see; all others may have
// happened before.
func (f *possible[S]) take(at follows, seen func(was, is *S) bool) error {
	next := map[S]bool{}
	for s := range f.reachable(at) {
		f.steps(s, at, func(t S, shown bool) {
			if shown && seen(&s, &t) {
				next[f.forget(t)] = true
			}
		})
	}
	if len(next) == 0 {
		return fmt.Errorf("in none of %d states the protocol does this", len(f.states[at]))
	}
	f.states[at] = next
	return nil
}

// reachable closes the states of a worker under the steps that nobody sees, and returns them.
func (f *possible[S]) reachable(at follows) map[S]bool {
	states := f.states[at]
	todo := slices.Collect(maps.Keys(states))
	for len(todo) > 0 {
		s := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		f.steps(s, at, func(t S, shown bool) {
			if shown {
				return
			}
			if t = f.forget(t); !states[t] {
				states[t] = true
				todo = append(todo, t)
			}
		})
	}
	return states
}

// all changes every state.
func (f *possible[S]) all(change func(of follows, s *S)) {
	change(follows{}, &f.world)
	for _, of := range f.order {
		next := make(map[S]bool, len(f.states[of]))
		for s := range f.states[of] {
			change(of, &s)
			next[s] = true
		}
		f.states[of] = next
	}
}
