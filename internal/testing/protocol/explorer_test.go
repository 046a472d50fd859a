//go:build !race

package protocol

import (
	"fmt"
	"hash/maphash"
	"strings"
	"time"
)

// model is a protocol in a situation.
type model[S comparable] interface {
	start() S
	// steps appends every step that some actor can take in s.
	steps(s *S, to []step[S]) []step[S]
	// broken names the invariant that s breaks; "" if none.
	broken(s *S) string
	// settled reports whether s owes nothing more: all is delivered, or the bridge ended for a good reason.
	settled(s *S) bool
	// stuck names what is wrong with a state from which no settled one can be reached.
	stuck(s *S) string
}

// chunk is how many states are kept together: one growing array would be copied, and take twice its memory then.
const chunk = 1 << 12

// result is what a walk through all states found.
type result[S comparable] struct {
	model  model[S]
	chunks [][]S
	parent []int32
	first  map[string]int32 // by broken invariant: the first state that breaks it, which is one of the nearest
	cut    bool             // there are more states than the limit
	took   time.Duration
}

// explore walks breadth first through all states of m, up to the limit. States behind a broken one are left out.
// If until is not empty, the walk ends as soon as that invariant is broken.
func explore[S comparable](m model[S], limit int, until string) *result[S] {
	began := time.Now()
	r := &result[S]{model: m, first: map[string]int32{}}
	seed := maphash.MakeSeed()
	seen := map[uint64]int32{} // 64 bits of hash stand for the state: of 10 million states, two share one with p = 3e-6
	var edges []edge           // only progress
	visit := func(s S, from int32) int32 {
		h := maphash.Comparable(seed, s)
		id, ok := seen[h]
		if !ok {
			id = int32(r.states())
			seen[h] = id
			r.add(s, from)
		}
		return id
	}
	visit(m.start(), -1)
	var next []step[S]
	for k := int32(0); int(k) < r.states(); k++ {
		if r.states() > limit {
			r.cut = true
			break
		}
		s := *r.state(k)
		if name := m.broken(&s); name != "" {
			if _, ok := r.first[name]; !ok {
				r.first[name] = k
			}
			if name == until {
				break
			}
			continue
		}
		next = m.steps(&s, next[:0])
		for i := range next {
			to := visit(next[i].to, k)
			if next[i].progress {
				edges = append(edges, edge{k, to})
			}
		}
	}
	if _, found := r.first[until]; !r.cut && !found {
		r.findDeadEnds(edges)
	}
	r.took = time.Since(began)
	return r
}

// states returns how many states were found.
func (r *result[S]) states() int { return len(r.parent) }

func (r *result[S]) state(k int32) *S { return &r.chunks[k/chunk][k%chunk] }

func (r *result[S]) add(s S, from int32) {
	if len(r.parent)%chunk == 0 {
		r.chunks = append(r.chunks, make([]S, 0, chunk))
	}
	last := &r.chunks[len(r.chunks)-1]
	*last = append(*last, s)
	r.parent = append(r.parent, from)
}

// edge is a step of progress between two states.
type edge struct{ from, to int32 }

// findDeadEnds looks for states from which progress leads to no settled state. It walks backward from the settled ones.
func (r *result[S]) findDeadEnds(edges []edge) {
	last := make([]int32, r.states())   // by state: 1 + the index of the last edge to it
	before := make([]int32, len(edges)) // by edge: the one before it in that list
	for i, e := range edges {
		before[i], last[e.to] = last[e.to], int32(i)+1
	}
	good := make([]bool, r.states())
	var todo []int32
	for k := range int32(r.states()) {
		if s := r.state(k); r.model.broken(s) != "" || r.model.settled(s) {
			good[k], todo = true, append(todo, k)
		}
	}
	for len(todo) > 0 {
		k := todo[len(todo)-1]
		todo = todo[:len(todo)-1]
		for i := last[k]; i > 0; i = before[i-1] {
			if from := edges[i-1].from; !good[from] {
				good[from], todo = true, append(todo, from)
			}
		}
	}
	for k := range int32(r.states()) {
		if !good[k] {
			name := r.model.stuck(r.state(k))
			if _, ok := r.first[name]; !ok {
				r.first[name] = k
			}
		}
	}
}

// trace returns the shortest way to the first state that breaks an invariant, in words.
func (r *result[S]) trace(invariant string) string {
	var path []int32
	for k := r.first[invariant]; k >= 0; k = r.parent[k] {
		path = append(path, k)
	}
	var b strings.Builder
	for i := len(path) - 1; i > 0; i-- {
		from, to := *r.state(path[i]), *r.state(path[i-1])
		for _, s := range r.model.steps(&from, nil) {
			if s.to == to {
				fmt.Fprintf(&b, "%4d  %s\n", len(path)-i, s.label)
				break
			}
		}
	}
	return b.String()
}
