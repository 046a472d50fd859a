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
	if v.Checked() != 30 {
		t.Errorf("%d markers", v.Checked())
	}
}
