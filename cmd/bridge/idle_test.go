package main

import "testing"

func TestIdleOnceAfterWork(t *testing.T) {
	t.Parallel()
	var i idle
	for n, step := range []struct {
		count int64
		want  bool
	}{{0, true}, {0, false}, {5, false}, {5, true}, {5, false}, {6, false}, {9, false}, {9, true}} {
		if got := i.now(step.count); got != step.want {
			t.Errorf("step %d, at %d: %v", n, step.count, got)
		}
	}
}
