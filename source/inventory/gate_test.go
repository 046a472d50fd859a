package inventory

import "testing"

// Requests that were under way together meet one overload: the first busy answer halves the limit, the others do not.
func TestOneOverloadHalvesOnce(t *testing.T) {
	g := newGate(8)
	enter := func(n int) (turns []int) {
		for range n {
			turn, err := g.enter(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			turns = append(turns, turn)
		}
		return turns
	}
	for _, want := range []int{4, 2, 1, 1} {
		for _, turn := range enter(len(g.tokens)) {
			g.leave(turn, true)
		}
		if g.limit != want || len(g.tokens) != want {
			t.Fatalf("the limit is %d, with %d requests that may begin, want %d", g.limit, len(g.tokens), want)
		}
	}
}
