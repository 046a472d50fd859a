package chaos

import (
	"strings"
	"testing"

	"blobfeed/verify"
)

// A key may change its partition only across a marker. The partition that was added lacks the first markers.
func TestLanes(t *testing.T) {
	for _, c := range []struct {
		topic string // a0: a record of key a in partition 0; |0: a marker there
		fails bool
	}{
		{"a0 b1 |0 |1 a0 |0 |1 |2 a2 b1 |0 |1 |2", false},
		{"a0 |0 |1 a0 |0 |1 |2 a2 a0 |0 |1 |2", true},
		{"a0 |0 |1 a0 a2 |0 |1 |2", true},
		{"a0 |0 a1 |1 |0 |1", true},
		{"a0 |0 |1 a1 |0 |1", false},
	} {
		l := newLanes()
		for step := range strings.FieldsSeq(c.topic) {
			r := verify.Record{Partition: int32(step[1] - '0')}
			if step[0] != '|' {
				r.Key = []byte(step[:1])
			}
			l.Note(r)
		}
		if f := l.Failures(); c.fails != (len(f) > 0) {
			t.Errorf("%s: %v", c.topic, f)
		}
	}
}
