package judge

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
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
		{"a record names an unknown account", naming("charlie"), "", "replay"},
		{"a marker names an unknown feed", inMarkers(midway, everywhere, func(r *kgo.Record) *kgo.Record {
			set(r, "feed", func([]byte) []byte { return []byte("charlie.blob.core.windows.net") })
			return r
		}), "", "resolved"},
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

// A marker from before the topic was shared names no feed: any bridge on the topic can have written it.
func TestVerifyMarkersWithoutFeed(t *testing.T) {
	s := shareTopic(t, "false")
	reason := "without a feed"
	for _, a := range []*account{s.alpha, s.bravo} {
		rs, of := s.judge(t, a, s.clone(), true)
		said := strings.Contains(fmt.Sprint(Verdict(rs)), reason)
		if of["resolved"] != NotChecked || of["replay"] != Holds || !said {
			t.Errorf("%s: %v: %s", a.name, Verdict(rs), shown(t, rs))
		}
	}
}

// What names another account is counted, and no fault; what names nobody is one.
func TestVerifyForeignRecords(t *testing.T) {
	s := shareTopic(t, "true")
	rs, of := s.judge(t, s.alpha, s.clone(), false)
	if text := shown(t, rs); of["foreign"] != Holds || !strings.Contains(text, "records of account bravo\n") ||
		!strings.Contains(text, "markers of feed bravo.blob.core.windows.net\n") {
		t.Error(text)
	}
	c := s.clone()
	c.topics[written].add(&kgo.Record{Value: []byte(`{"garbage": 1}`)})
	rs, of = s.judge(t, s.alpha, c, false)
	if text := shown(t, rs); of["foreign"] != Broken || !strings.Contains(text, "and of 1 record with neither a key") {
		t.Error(text)
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
