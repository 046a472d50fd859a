package chaos

import (
	"strings"
	"testing"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// The ledger accepts what gaps and seeks explain, and nothing else. The feed has an event in each of the segments
// 1 to 5.
func TestLedger(t *testing.T) {
	const names = "12345"
	for _, c := range []struct {
		// 1 to 5: the event; -N: retention removes the segment N; gN-M: a gap; sN>M: a seek; x: an unknown event
		topic string
		fails string // "": it does not
	}{
		{"1 2 3 4 5", ""},
		{"1 2 4 5", "1 events are missing: segment 3, after seek 0, removed false"},
		{"1 2 x 3 4 5", "at x/00/00000/0/0 was not expected"},
		// retention
		{"1 2 3 4 5 -1 -2", ""},
		{"1 -2 -3 g2-3 4 5", ""},
		{"1 -2 -3 3 g2-4 4 5", ""}, // it was in memory
		{"1 -2 -3 4 5", "1 events are missing: segment 2, after seek 0, removed true"},
		{"1 -2 -3 g2-2 4 5", "1 events are missing: segment 3, after seek 0, removed true"},
		{"1 -2 g2-4 4 5", "1 events are missing: segment 3, after seek 0, removed false"},
		{"1 2 g2-3 3 4 5", "a gap from 2 to 3 is recorded, and retention has removed nothing there"},
		{"1 2 -1 g2-3 3 4 5", "a gap from 2 to 3 is recorded, and retention has removed nothing there"},
		// seeks
		{"1 2 3 s3>2 2 3 4 5", ""},
		{"1 2 3 s3>2 3 4 5", "1 events are missing: segment 2, after seek 1, removed false"},
		{"1 2 3 s3>2 1 2 3 4 5", "the event is of segment 1, and the last seek went to 2"},
		{"1 2 s2>4 4 5", ""},
		// it was not delivered up to there
		{"1 s3>4 4 5", "1 events are missing: segment 2, after seek 0, removed false"},
		{"1 2 s2>4 4 s5>3 3 4 5", ""},
		{"1 2 s2>4 4 s5>2 3 4 5", "1 events are missing: segment 2, after seek 2, removed false"},
		{"1 2 s2>4 s4>3 3 4 5", ""},
		// both
		{"1 2 3 -1 -2 s3>1 3 4 5", ""}, // it began at what was left
		{"1 2 -3 s3>1 1 2 4 5", "1 events are missing: segment 3, after seek 1, removed true"},
		{"1 2 -3 s3>1 1 2 g3-3 4 5", ""},
		// of the round before
		{"1 2 -3 s3>1,g3-3 1 2 4 5", "1 events are missing: segment 3, after seek 1, removed true"},
		{"1 -2 s3>3,g2-2 3 4 5", ""},
	} {
		l := newLedger()
		for _, n := range names {
			l.expect(feedsim.Event{ID: string(n), Segment: string(n)})
		}
		for step := range strings.FieldsSeq(c.topic) {
			r := verify.Record{}
			for word := range strings.SplitSeq(step, ",") {
				switch word[0] {
				case '-':
					l.remove(word[1:], func(int, int) bool { return true })
				case 'g':
					r.Headers = append(r.Headers,
						verify.Header{Key: "gap", Value: []byte(strings.ReplaceAll(word[1:], "-", " "))})
				case 's':
					r.Headers = append(r.Headers,
						verify.Header{Key: "seek", Value: []byte(strings.ReplaceAll(word[1:], ">", " "))})
				default:
					at := feedsim.Event{Segment: word}
					r.Key, r.Headers = []byte(word), []verify.Header{{Key: "position", Value: []byte(at.Position())}}
				}
			}
			l.Note(r)
		}
		var text strings.Builder
		for _, f := range l.Failures() {
			text.WriteString(f.String() + "\n")
		}
		if got := text.String(); c.fails == "" && got != "" || !strings.Contains(got, c.fails) {
			t.Errorf("%s: found %q, want %q", c.topic, got, c.fails)
		}
	}
}

// What retention removes of a segment is a part of its chunks.
func TestLedgerOfChunks(t *testing.T) {
	l := newLedger()
	second := feedsim.Event{ID: "b", Segment: "1", Shard: 7, Chunk: 1}
	l.expect(feedsim.Event{ID: "a", Segment: "1", Shard: 7})
	l.expect(second)
	gone := l.remove("1", func(shard, chunk int) bool { return shard == 7 && chunk == 0 })
	if len(gone) != 1 || gone[0] != 0 {
		t.Errorf("removed: %v", gone)
	}
	l.Note(verify.Record{Headers: []verify.Header{{Key: "gap", Value: []byte("1 1")}}})
	if f := l.Failures(); len(f) != 1 || !strings.HasPrefix(f[0].Problem, "1 events are missing") {
		t.Errorf("without the second chunk: %v", f)
	}
	l.Note(verify.Record{Key: []byte("k"), Headers: []verify.Header{{Key: "position", Value: []byte(second.Position())}}})
	if f := l.Failures(); len(f) > 0 {
		t.Error(f)
	}
	if m := l.moves(); m != (Moves{Gaps: 1, Removed: 1, Lost: 1}) {
		t.Errorf("%+v", m)
	}
}

// An event that is twice in the log has to come twice.
func TestLedgerOfCopies(t *testing.T) {
	l := newLedger()
	for index := range 2 {
		e := feedsim.Event{ID: "a", Segment: "1", Index: index}
		l.expect(e)
		l.Note(verify.Record{Key: []byte("k"), Headers: []verify.Header{{Key: "position", Value: []byte(e.Position())}}})
		if f := l.Failures(); len(f) > 0 {
			t.Errorf("%d: %v", index, f)
		}
	}
	l.expect(feedsim.Event{ID: "a", Segment: "1", Index: 2})
	if f := l.Failures(); len(f) != 1 || !strings.HasPrefix(f[0].Problem, "1 events are missing") {
		t.Errorf("without the third copy: %v", f)
	}
}

// A partition that is added behind a seek has no marker of that seek.
func TestLedgerOfAddedPartitions(t *testing.T) {
	l := newLedger()
	note := func(p int32, segment, seek string) {
		r := verify.Record{Partition: p}
		if seek != "" {
			r.Headers = []verify.Header{{Key: "seek", Value: []byte(seek)}}
		} else {
			at := feedsim.Event{Segment: segment}
			r.Key, r.Headers = []byte("k"), []verify.Header{{Key: "position", Value: []byte(at.Position())}}
		}
		l.Note(r)
	}
	for _, segment := range []string{"1", "2", "3", "4"} {
		l.expect(feedsim.Event{ID: segment, Segment: segment})
	}
	note(0, "1", "")
	note(0, "2", "")
	note(0, "", "2 2")
	note(0, "2", "")
	note(partitions, "3", "") // it comes in the round of the first seek
	note(partitions, "", "3 3")
	note(0, "", "3 3")
	note(0, "3", "")
	note(partitions, "4", "")
	note(partitions+1, "4", "")
	if f := l.Failures(); len(f) > 0 {
		t.Error(f)
	}
	note(partitions, "2", "")
	if f := l.Failures(); len(f) != 1 || !strings.Contains(f[0].Problem, "the last seek went to 3") {
		t.Error(f)
	}
}
