package pause

import "testing"

// enter takes all tokens.
func enter(t *testing.T, g *Gate) (turns []int) {
	t.Helper()
	for range len(g.tokens) {
		turn, err := g.Enter(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		turns = append(turns, turn)
	}
	return turns
}

// Requests that were under way together meet one overload: the first busy answer halves the limit, the others do not.
func TestOneOverloadHalvesOnce(t *testing.T) {
	g := NewGate(8, 8)
	for _, want := range []int{4, 2, 1, 1} {
		for _, turn := range enter(t, g) {
			g.Leave(turn, true)
		}
		if g.limit != want || len(g.tokens) != want {
			t.Fatalf("the limit is %d, with %d requests that may begin, want %d", g.limit, len(g.tokens), want)
		}
	}
}

// While somebody waits, the limit doubles with each round of good answers, until the service is overloaded. Then it
// rises slowly.
func TestLimitFollowsTheDistance(t *testing.T) {
	g := NewGate(2, 16)
	round := func(busy bool) {
		for _, turn := range enter(t, g) {
			g.Leave(turn, busy)
		}
	}
	if round(false); g.limit != 2 {
		t.Errorf("the limit is %d, and nobody waits", g.limit)
	}
	g.Waits(true)
	for _, want := range []int{4, 8, 16, 16} {
		if round(false); g.limit != want || len(g.tokens) != want {
			t.Errorf("the limit is %d, with %d requests that may begin, want %d", g.limit, len(g.tokens), want)
		}
	}
	round(true)
	if round(false); g.limit != 8 {
		t.Errorf("the limit is %d behind an overload", g.limit)
	}
	for range raiseAfter {
		round(false)
	}
	if g.limit != 9 {
		t.Errorf("the limit is %d after many good answers", g.limit)
	}
}
