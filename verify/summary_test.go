package verify

import "testing"

// A validator of a topic where everything is wrong keeps little, and counts the rest.
func TestFailuresAreBounded(t *testing.T) {
	u := NewUnique()
	for range 1001 {
		u.Note(data(1, 1, 0))
	}
	f := u.Failures()
	if len(f) != kept+1 || f[kept].String() != "and 980 more" {
		t.Errorf("%d failures, at the end %v", len(f), f[len(f)-1])
	}
	v := NewResolved(100)
	for i := range 30 {
		v.Note(mark(0, i))
	}
	for range 2 { // asking changes nothing
		if f := v.Failures(); len(f) != kept+1 || f[kept].String() != "and 79 more" {
			t.Errorf("%d failures, at the end %v", len(f), f[len(f)-1])
		}
	}
	if v.Markers() != 30 {
		t.Errorf("%d markers", v.Markers())
	}
}

// A check that saw no data is not passed.
func TestSummaryOfNothing(t *testing.T) {
	g := All(NewUnique(), NewOrder())
	g.Note(mark(2, 1))
	if s := g.Summary(); s.OK() || s.Markers != 1 || s.Partitions != 1 || s.Topics != 1 {
		t.Errorf("%+v", s)
	}
	g.Note(data(1, 1, 2))
	const want = "1 records and 1 markers on 2 partitions of 1 topics\nunique     ok, 1\norder      ok, 1\n"
	if s := g.Summary(); !s.OK() || s.String() != want {
		t.Errorf("%v", s)
	}
}
