package offsets

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/source"
)

// Whatever the offsets topic holds, it is read or refused: no panic, no half of a document in the state, and
// what was read says the same when it is written again.
func FuzzState(f *testing.F) {
	for _, key := range []string{keyCursor, keyFrontier, keyOwner} {
		f.Add(key, []byte(nil))
		f.Add(key, []byte(`{"version":1}`))
		f.Add(key, []byte(`{"version":2}`))
		f.Add(key, []byte(`null`))
	}
	f.Add(keyCursor, []byte(`{"version":1,"owner":"a","timestamp":"2026-01-01T00:00:00Z","segment":"2026/01/01/0000",`+
		`"shards":{"00":{"chunk":1,"offset":1488},"03":{"chunk":-1,"offset":-5}},"done":true,"counts":{"read":1}}`))
	f.Add(keyCursor, []byte(`{"version":1,"segment":"2026/13/01/0000"}`))
	f.Add(keyCursor, []byte(`{"version":1,"shards":{"00":{"chunk":9223372036854775808}}}`))
	f.Add(
		keyFrontier,
		[]byte(`{"version":1,"completed":"2026/01/01/0000","current":"","resolved":"1590609600000000000.0000000000",`+
			`"feed":"f","gap":{"from":"2026/01/01/0000","to":"2026/01/01/0200"},"settings":{"A":"b"},"topics":{"t":4}}`),
	)
	f.Add("else", []byte(`?`))
	f.Fuzz(func(t *testing.T, key string, value []byte) {
		v := NewView(stateTopic, 1)
		before, _, _ := v.Get()
		err := v.apply(&kgo.Record{Key: []byte(key), Value: value})
		s, _, _ := v.Get()
		if err != nil {
			if s != before || s.Cursors[0] != nil || s.Frontier != nil || s.Owners[0] != "" || s.next[0] != 0 {
				t.Fatalf("%v, and the state has changed: %+v", err, s)
			}
			return
		}
		if s.next[0] != 1 {
			t.Fatalf("next is %d", s.next[0])
		}
		var doc any
		switch {
		case s.Cursors[0] != nil:
			c := s.Cursor(0)
			doc = c
			own := c.At(c.Segment, 7)
			c.Advance(c.Segment, 7, source.ShardPosition{Chunk: own.Chunk, Offset: own.Offset ^ 1})
			if s.Cursors[0].At(c.Segment, 7) != own {
				t.Fatal("a change of the copy shows in the state")
			}
		case s.Frontier != nil:
			doc = s.Frontier
		default:
			return
		}
		once, err := json.Marshal(doc)
		if err != nil {
			t.Fatalf("writing what was read: %v", err)
		}
		again := NewView(stateTopic, 1)
		if err := again.apply(&kgo.Record{Key: []byte(key), Value: once}); err != nil {
			t.Fatalf("reading what was written: %v: %s", err, once)
		}
		s, _, _ = again.Get()
		doc = s.Frontier
		if key == keyCursor {
			doc = s.Cursors[0]
		}
		if twice, err := json.Marshal(doc); err != nil || !bytes.Equal(once, twice) {
			t.Fatalf("%s becomes %s, %v", once, twice, err)
		}
	})
}
