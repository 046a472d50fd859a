package judge

import (
	"errors"
	"maps"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Verify is judged itself: of what the bridge wrote, in whatever form, it says that it holds; and each fault that is
// put into that is found, by the name of the promise. A short run takes a sixth of the forms, in which not every fault
// has a place.
func TestVerifyIsRight(t *testing.T) {
	var scenes []*scene
	for i, f := range forms() {
		if testing.Short() && i%6 > 0 && !strings.Contains(f.name, "aside") {
			continue
		}
		t.Run("deliver "+f.name, func(sub *testing.T) { scenes = append(scenes, stage(sub, t, f)) })
	}
	placed := make([]map[string]bool, len(scenes))
	t.Run("judge", func(t *testing.T) {
		for i, s := range scenes {
			placed[i] = map[string]bool{}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.holds(t)
				for j, x := range append(faults(), scanFaults()...) {
					s.finds(t, x, placed[i], i+j)
				}
			})
		}
	})
	for _, x := range append(faults(), scanFaults()...) {
		if !testing.Short() && !slices.ContainsFunc(placed, func(p map[string]bool) bool { return p[x.name] }) {
			t.Errorf("%q was put into no form", x.name)
		}
	}
}

// holds judges what the bridge wrote.
func (s *scene) holds(t *testing.T) {
	for _, how := range []struct{ feed, stateless bool }{{false, false}, {true, false}, {true, true}} {
		rs, _ := s.verify(t, s.clone(), how.feed, how.stateless)
		text := shown(t, rs)
		var broken *BrokenError
		if how.stateless && s.stateful && !errors.As(Verdict(rs), &broken) {
			continue // nothing says what has to be there
		}
		if Verdict(rs) != nil {
			t.Errorf("feed %t, stateless %t: %v: %s", how.feed, how.stateless, Verdict(rs), text)
		}
	}
}

// A comparison says where a missing event is in the feed, and in which fields records differ.
func TestComparisonNamesPlaceAndFields(t *testing.T) {
	s := stage(t, t, form{name: "changed", then: func(t *testing.T, _ *liveFeed) {
		t.Setenv("BRIDGE_OPTIONS", "updated,key_in_value,mvcc_timestamp")
	}})
	rs, of := s.verify(t, s.clone(), true, false)
	if text := shown(t, rs); of["replay"] != Broken || !strings.Contains(text, "mvcc_timestamp is null, expected \"") ||
		!strings.Contains(text, "bridge verify --config <former file>") {
		t.Error(text)
	}
	s = stage(t, t, form{name: "lost"})
	c := s.clone()
	missing := inData(func(rs []*kgo.Record, i int) []*kgo.Record { return slices.Delete(rs, i, i+1) })
	if !missing(s.victim(c)) {
		t.Fatal("nothing is missing")
	}
	rs, _ = s.verify(t, c, true, false)
	where := regexp.MustCompile(`is missing, number \d+ of the key's \d+; ` +
		`in the feed it is at 2026/01/01/\d{4}/\d\d/\d{5}/\S+, with id \w`)
	if text := shown(t, rs); !where.MatchString(text) {
		t.Error(text)
	}
}

// finds puts a fault into it, and looks whether it is found. To compare with the feed takes longer, so that is done
// with half of the pairs of form and fault, and with a quarter of those that the state alone finds.
func (s *scene) finds(t *testing.T, x fault, placed map[string]bool, turn int) {
	for _, by := range []string{"state", "feed"} {
		c, skip := s.clone(), 2
		if x.state != "" && !s.cant("state", x.name) {
			skip = 4
		}
		if testing.Short() {
			skip *= 2
		}
		if x.by(by) == "" || s.cant(by, x.name) || by == "feed" && turn%skip != 0 || !x.put(s.victim(c)) {
			continue
		}
		placed[x.name] = true
		rs, of := s.verify(t, c, by == "feed", by == "feed" && !s.stateful)
		for _, check := range strings.Fields(x.by(by)) {
			if status := of[check]; status != Broken && (status != "" || check == "replay" || check == "resolved") {
				t.Errorf("%s: %s is %q by the %s: %s", x.name, check, status, by, shown(t, rs))
			}
		}
		if !slices.Contains(slices.Collect(maps.Values(of)), Broken) {
			t.Errorf("%s: not found by the %s", x.name, by)
		}
	}
}

// by returns the checks that find a fault.
func (x *fault) by(what string) string {
	if what == "state" {
		return x.state
	}
	return x.feed
}

// cant reports whether a fault can't be seen in the form.
func (s *scene) cant(by, name string) bool {
	return slices.Contains(s.unknown, name) || slices.Contains(s.unknown, by+":"+name)
}

func shown(t *testing.T, rs []*Report) string {
	t.Helper()
	var b strings.Builder
	for _, r := range rs {
		b.WriteString(r.Text())
	}
	return b.String()
}
