package judge

import (
	"bytes"
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/offsets"
)

// Two accounts in one topic, with the same keys, ids and positions: each is judged alone. A fault of one is found
// there, by the name of the promise, and is none of the other.
func TestVerifySharedTopic(t *testing.T) {
	for _, settings := range []string{
		"", "RESOLVED_TO=topic", "DELIVERY=at_least_once", "ENVELOPE=enriched HEADERS=none RESOLVED_TO=inline",
	} {
		t.Run(settings, func(t *testing.T) {
			s := shareTopic(t, "true", strings.Fields(settings)...)
			for _, feed := range []bool{false, true} {
				for _, a := range []*account{s.alpha, s.bravo} {
					rs, of := s.judge(t, a, s.clone(), feed)
					r := rs[0]
					found := r.Records > 0 && len(r.Others) == 2
					if Verdict(rs) != nil || of["resolved"] != Holds || of["foreign"] != Holds || !found {
						t.Errorf("%s, feed %t: %v: %s", a.name, feed, Verdict(rs), shown(t, rs))
					}
				}
			}
			if strings.Contains(settings, "HEADERS=none") {
				return // the account is in the value: this is about reading it
			}
			placed := 0
			for i, x := range append(faults(), strangers()...) {
				if x.name == "a marker is of another feed" {
					continue // strangers has that of a shared topic
				}
				placed += s.finds(t, x, strings.Contains(settings, "at_least_once"), i)
			}
			if placed < 15 {
				t.Errorf("%d faults were put into the topic", placed)
			}
		})
	}
}

// strangers are faults of a topic that several accounts share.
func strangers() []fault {
	naming := func(account string) func(*victim) bool {
		return instead(func(r *kgo.Record) {
			set(r, "ce_source", func(text []byte) []byte {
				return bytes.Replace(text, []byte("/alpha"), []byte("/"+account), 1)
			})
		})
	}
	return []fault{
		{"a record names an unknown account", naming("charlie"), "foreign", "foreign replay"},
		{"a marker names an unknown feed", inMarkers(midway, everywhere, func(r *kgo.Record) *kgo.Record {
			set(r, "feed", func([]byte) []byte { return []byte("charlie.blob.core.windows.net") })
			return r
		}), "foreign", "foreign resolved"},
	}
}

// finds puts a fault into what the first account has. To compare with the feed takes longer: that is done with every
// second fault, and with those that the state alone does not find.
func (s *sharedTopic) finds(t *testing.T, x fault, repeats bool, turn int) (placed int) {
	t.Helper()
	for _, by := range []string{"state", "feed"} {
		c := s.clone()
		skip := by == "feed" && x.state != "" && turn%2 == 0 || repeats && x.state != "resolved"
		if x.by(by) == "" || skip || !s.put(c, s.alpha, x) {
			continue
		}
		placed++
		want, foreign := x.by(by), strings.Contains(x.by(by), "foreign")
		if x.name == "a record is somebody else's" { // not of this account either, so it is not compared
			want, foreign = "foreign", true
		}
		rs, of := s.judge(t, s.alpha, c, by == "feed")
		for _, check := range strings.Fields(want) {
			if of[check] != Broken && (of[check] != NotChecked || check == "replay" || check == "resolved") {
				t.Errorf("%s: %s is %q by the %s: %s", x.name, check, of[check], by, shown(t, rs))
			}
		}
		rs, of = s.judge(t, s.bravo, c, by == "feed")
		for check, status := range of {
			if (status == Broken) != (foreign && check == "foreign") {
				t.Errorf("%s of the other account: %s is %s by the %s: %s", x.name, check, status, by, shown(t, rs))
			}
		}
	}
	return placed
}

// A marker from before the topic was shared names no feed: it counts where one bridge alone can have written it.
func TestVerifyMarkersWithoutFeed(t *testing.T) {
	s := shareTopic(t, "false")
	reason := "without a feed"
	for _, a := range []*account{s.alpha, s.bravo} {
		rs, of := s.judge(t, a, s.clone(), true)
		said := strings.Contains(shown(t, rs), reason)
		if of["resolved"] != NotChecked || of["replay"] != Holds || Verdict(rs) == nil || !said {
			t.Errorf("%s: %v: %s", a.name, Verdict(rs), shown(t, rs))
		}
	}
	// The second bridge writes no markers to the topic: then all of them are of the first.
	c := s.clone()
	c.bravo(func(f *offsets.Frontier) { f.Settings["BRIDGE_RESOLVED_TO"] = "topic" })
	if rs, of := s.judge(t, s.alpha, c, true); of["resolved"] != Holds || Verdict(rs) != nil {
		t.Errorf("%v: %s", Verdict(rs), shown(t, rs))
	}
	c.hidden = []error{errors.New("not permitted")} // a state that may be another bridge's
	if rs, of := s.judge(t, s.alpha, c, true); of["resolved"] != NotChecked {
		t.Errorf("%v: %s", Verdict(rs), shown(t, rs))
	}
}

// Records of no known bridge are a fault only if all bridges, and their accounts, are known.
func TestVerifyForeignRecords(t *testing.T) {
	s := shareTopic(t, "true")
	reset := func(c *copied) { delete(c.states, "bravo.offsets") }
	reads := func(feed string) func(*copied) { // and so its markers are of a feed that is not known
		return func(c *copied) { c.bravo(func(f *offsets.Frontier) { f.Feed = feed }) }
	}
	for name, c := range map[string]struct {
		change func(c *copied)
		status string
		says   string
	}{
		"nothing": {func(*copied) {}, Holds, "records of account bravo (bridge bravo)"},
		"an open segment": {func(c *copied) {
			c.bravo(func(f *offsets.Frontier) { f.Topics = nil })
		}, Holds, "(bridge bravo)"},
		"reset": {reset, Broken, "records of account bravo, which no bridge on the topic reads"},
		"reset and hidden": {func(c *copied) {
			reset(c)
			c.hidden = []error{errors.New("no right to")}
		}, NotChecked, "no right to"},
		"of a directory":    {reads("file:///feeds/b"), Broken, "(bridge perhaps bravo)"},
		"of another domain": {reads("blobs.example.com"), Broken, "(bridge perhaps bravo)"},
	} {
		t.Run(name, func(t *testing.T) {
			copied := s.clone()
			copied.states = maps.Clone(copied.states) // the change may delete one
			c.change(copied)
			rs, of := s.judge(t, s.alpha, copied, false)
			if of["foreign"] != c.status || !strings.Contains(shown(t, rs), c.says) {
				t.Errorf("foreign is %s: %s", of["foreign"], shown(t, rs))
			}
		})
	}
}

// A bridge that starts while verify reads is known, too.
func TestVerifyYoungBridge(t *testing.T) {
	s := shareTopic(t, "true")
	v := *s.alpha.base
	v.cluster = &young{copied: s.copied}
	if rs, err := v.run(t.Context()); err != nil || Verdict(rs) != nil {
		t.Errorf("%v, %v: %s", err, Verdict(rs), shown(t, rs))
	}
}

// Retention may leave a partition nothing of one account, and records of another. What is gone is no fault.
func TestVerifySharedTopicAfterRetention(t *testing.T) {
	s := shareTopic(t, "true")
	tape := s.topics[written]
	for _, p := range []int32{0, 1} {
		last := slices.IndexFunc(tape.records[p], s.bravo.wrote)
		for i, r := range tape.records[p] {
			if s.alpha.wrote(r) {
				last = i
			}
		}
		tape.from[p] = tape.records[p][last].Offset + 1
		if tape.from[p] >= tape.to[p] || len(tape.records[p]) == last+1 {
			t.Fatalf("partition %d has nothing of the second account at its end", p)
		}
	}
	for _, feed := range []bool{false, true} {
		for _, a := range []*account{s.alpha, s.bravo} {
			if rs, of := s.judge(t, a, s.clone(), feed); Verdict(rs) != nil || of["resolved"] != Holds {
				t.Errorf("%s, feed %t: %v: %s", a.name, feed, Verdict(rs), shown(t, rs))
			}
		}
	}
}

// Without its state an account is judged by its markers, which are read first. The records of others are counted once.
func TestVerifySharedTopicWithoutState(t *testing.T) {
	s := shareTopic(t, "true")
	want, _ := s.judge(t, s.alpha, s.clone(), true)
	c := s.clone()
	c.states = maps.Clone(c.states)
	delete(c.states, "alpha.offsets")
	rs, _ := s.judge(t, s.alpha, c, true)
	if Verdict(rs) != nil || rs[0].Feed.Required == 0 || !slices.Equal(rs[0].Others, want[0].Others) {
		t.Errorf("%v, %v instead of %v: %s", Verdict(rs), rs[0].Others, want[0].Others, shown(t, rs))
	}
}
