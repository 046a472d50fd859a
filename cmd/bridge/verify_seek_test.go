package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/plain"
)

// What is repeated, or skipped, because an operator asked for it, is no fault: it is counted, and all else
// is judged.
func TestVerifyAfterSeek(t *testing.T) {
	t.Parallel()
	cl := delivered(t, "../../testdata/real-2020", "START=2020-05-27T15:44:30Z")
	var again, required int64
	for i, to := range []string{"2020/05/27/1800", "2020-05-27T18:00:00Z", "2020-05-29T17:00:00Z"} {
		if code, _, stderr := call(t, "seek", "--to", to, "--yes"); code != exitOK {
			t.Fatal(stderr)
		}
		if code, stdout, stderr := call(t, "verify", "--feed"); code != exitOK {
			t.Errorf("before it goes on at %s: exit code %d: %s%s", to, code, stdout, stderr)
		}
		if code, _, stderr := call(t, "run", "--once"); code != exitOK {
			t.Fatal(stderr)
		}
		code, stdout, stderr := call(t, "verify", "--feed", "--output", "json")
		r, _ := statusFrom(t, stdout)
		if code != exitOK {
			t.Fatalf("after the seek to %s: exit code %d: %s%s", to, code, stdout, stderr)
		}
		if f := r.Feed; len(r.Seeks) != i+1 || r.Again <= again || f.Required == 0 || f.Required >= f.Given ||
			i == 2 && f.Required != required {
			t.Errorf("after the seek to %s: %q, %d events came again, %d before; %+v", to, r.Seeks, r.Again, again, f)
		}
		again, required = r.Again, r.Feed.Required
	}
	repeated := "no event comes twice, but for " + plain.Number(again) + " that bridge seek repeats ("
	if _, stdout, _ := call(t, "verify"); !strings.Contains(stdout, repeated) || !strings.Contains(stdout,
		"bridge seek moved the bridge (from 2020/05/29/2100 to 2020/05/27/1800, from 2020/05/29/2100 to "+
			"2020-05-27T18:00:00Z, from 2020/05/29/2100 to 2020-05-29T17:00:00Z), and repeats ") {
		t.Errorf("it is not said: %s", stdout)
	}
	rs := readBy(t, cl.Opts(), written)
	for _, r := range rs {
		r.Headers = slices.DeleteFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == "seek" })
	}
	produce(t, cl, "untold", rs)
	if code, _, stderr := call(t, "verify", "--topic", "untold"); code != exitBroken ||
		!strings.Contains(stderr, "unique, order, resolved") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// What was delivered before a seek back is still required: a seek repeats, and takes nothing away. That holds for one
// that is repeated, or replaced by one to another place, before the bridge has continued.
func TestVerifyRequiresWhatWasBeforeASeek(t *testing.T) {
	t.Parallel()
	for name, to := range map[string][]string{
		"once": {"2020/05/29/1700"}, "twice": {"2020/05/29/1700", "2020/05/29/1700"},
		"to another place": {"2020-05-29T19:00:00Z", "2020/05/27/1800", "2020/05/29/1700"},
	} {
		t.Run(name, func(t *testing.T) {
			cl := delivered(t, "../../testdata/real-2020")
			for range 2 {
				for i, place := range to {
					code, stdout, stderr := call(t, "seek", "--to", place, "--yes")
					if code != exitOK || !strings.HasSuffix(stdout, "done\n") ||
						strings.Contains(stdout, "This replaces the last seek, to ") != (i > 0) {
						t.Fatal(stdout, stderr)
					}
				}
				if code, stdout, stderr := call(t, "verify", "--feed"); code != exitOK {
					t.Errorf("before it continues: exit code %d: %s%s", code, stdout, stderr)
				}
				if code, _, stderr := call(t, "run", "--once"); code != exitOK {
					t.Fatal(stderr)
				}
				if code, stdout, stderr := call(t, "verify", "--feed"); code != exitOK ||
					strings.Contains(stdout, "not in the topic") {
					t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
				}
			}
			rs := readBy(t, cl.Opts(), written)
			early := slices.IndexFunc(rs, func(r *kgo.Record) bool { return r.Key != nil })
			if _, err := kadm.NewClient(cl).DeleteTopics(t.Context(), written); err != nil { // the state stays
				t.Fatal(err)
			}
			produce(t, cl, written, slices.Delete(rs, early, early+1))
			if code, stdout, stderr := call(t, "verify", "--feed"); code != exitBroken ||
				!strings.Contains(stdout, "lacks 1 of ") {
				t.Errorf("exit code %d: %s%s", code, stdout, stderr)
			}
		})
	}
}

// A segment that was complete when a seek left it was delivered, up to its last event.
func TestVerifyRequiresTheSegmentThatASeekLeft(t *testing.T) {
	t.Parallel()
	cl := delivered(t, "../../testdata/real-2020")
	for _, args := range []string{"seek --to 2020/05/29/2200 --yes --force", "run --once"} {
		if code, stdout, stderr := call(t, strings.Fields(args)...); code != exitOK {
			t.Fatal(stdout, stderr)
		}
	}
	code, stdout, stderr := call(t, "verify", "--feed")
	if code != exitOK || !strings.Contains(stdout, "717 of them must be in it") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	rs := readBy(t, cl.Opts(), written)
	last := 0
	for i, r := range rs {
		if r.Key != nil && r.Timestamp.After(rs[last].Timestamp) {
			last = i
		}
	}
	if _, err := kadm.NewClient(cl).DeleteTopics(t.Context(), written); err != nil { // the state stays
		t.Fatal(err)
	}
	produce(t, cl, written, slices.Delete(rs, last, last+1))
	code, stdout, stderr = call(t, "verify", "--feed")
	if code != exitBroken || !strings.Contains(stdout, "lacks 1 of ") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
}
