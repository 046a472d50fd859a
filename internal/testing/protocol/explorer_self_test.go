//go:build !race

package protocol

import (
	"strings"
	"testing"
)

// climb is a model of a number that rises by one or two. Seven is broken, ten is the aim, and eleven is a dead end.
type climb struct{}

func (climb) start() int { return 0 }
func (climb) broken(s *int) string {
	if *s == 7 {
		return "seven"
	}
	return ""
}
func (climb) settled(s *int) bool { return *s == 10 }
func (climb) stuck(*int) string   { return deadEnd }
func (climb) steps(s *int, to []step[int]) []step[int] {
	if *s < 10 {
		to = append(to, step[int]{*s + 1, say("one"), true}, step[int]{*s + 2, say("two"), *s != 9})
	}
	return to
}

// The explorer finds every state once, the shortest way, and a dead end that only a step without progress leads to.
func TestExplorer(t *testing.T) {
	r := explore[int](climb{}, 100, "")
	if r.states() != 12 || r.cut {
		t.Errorf("%d states, cut %v", r.states(), r.cut)
	}
	if len(r.first) != 2 {
		t.Errorf("broken: %v", r.first)
	}
	if trace := r.trace("seven"); strings.Count(trace, "\n") != 4 {
		t.Errorf("a way to seven in other than four steps:\n%s", trace)
	}
	if s := *r.state(r.first[deadEnd]); s != 11 {
		t.Errorf("the dead end is %d", s)
	}
	if r := explore[int](climb{}, 5, ""); !r.cut {
		t.Error("the limit does not cut")
	}
}
