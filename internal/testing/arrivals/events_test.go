package arrivals

import (
	"strings"
	"testing"

	"blobfeed/verify"
)

func TestEvents(t *testing.T) {
	e := New()
	for _, id := range []string{"a", "a", "b"} {
		e.Expect(id)
	}
	note := func(id string) {
		e.Note(verify.Record{Key: []byte("k"), Headers: []verify.Header{{Key: "ce_id", Value: []byte(id)}}})
	}
	note("c")
	note("a")
	note("a")
	f := e.Failures()
	if e.Left() != 1 || len(f) != 2 || !strings.HasSuffix(f[0].Problem, "1 of 2 expected events, among them b") ||
		!strings.Contains(f[1].Problem, `"c" was not expected`) {
		t.Error(e.Left(), f)
	}
	note("b")
	if f = e.Failures(); e.Left() != 0 || len(f) != 1 || e.Checked() != 4 {
		t.Error(e.Left(), f, e.Checked())
	}
}
