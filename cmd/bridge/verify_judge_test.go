package main

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// Verify is judged itself: of what the bridge wrote, in whatever form, it says that it holds; and each fault that is put
// into that is found, by the name of the promise.
func TestVerifyIsRight(t *testing.T) {
	var scenes []*scene
	for _, f := range forms() {
		t.Run("deliver "+f.name, func(sub *testing.T) { scenes = append(scenes, stage(sub, t, f)) })
	}
	placed := make([]map[string]bool, len(scenes))
	t.Run("judge", func(t *testing.T) {
		for i, s := range scenes {
			placed[i] = map[string]bool{}
			t.Run(s.name, func(t *testing.T) {
				t.Parallel()
				s.holds(t)
				for j, x := range faults() {
					s.finds(t, x, placed[i], (i+j)%3 == 0)
				}
			})
		}
	})
	for _, x := range faults() {
		if !slices.ContainsFunc(placed, func(p map[string]bool) bool { return p[x.name] }) {
			t.Errorf("%q was put into no form", x.name)
		}
	}
}

// holds judges what the bridge wrote.
func (s *scene) holds(t *testing.T) {
	for _, how := range []struct{ feed, stateless bool }{{false, false}, {true, false}, {true, true}} {
		if how.stateless && s.stateful {
			continue // nothing says what has to be there
		}
		if rs, _ := s.verify(t, s.clone(), how.feed, how.stateless); verdict(rs) != nil {
			t.Errorf("feed %t, stateless %t: %v: %s", how.feed, how.stateless, verdict(rs), shown(t, rs))
		}
	}
}

// finds puts a fault into it, and looks whether it is found. What the state finds, the feed finds, too: that is looked at
// where the test is to be thorough.
func (s *scene) finds(t *testing.T, x fault, placed map[string]bool, thorough bool) {
	for _, by := range []string{"state", "feed"} {
		c := s.clone()
		if x.by(by) == "" || s.cant(by, x.name) || by == "feed" && x.state != "" && !s.cant("state", x.name) && !thorough || !x.put(s.victim(c)) {
			continue
		}
		placed[x.name] = true
		rs, of := s.verify(t, c, by == "feed", by == "feed" && !s.stateful)
		for _, check := range strings.Fields(x.by(by)) {
			if status := of[check]; status != broken && (status != "" || check == "replay" || check == "resolved") {
				t.Errorf("%s: %s is %q by the %s: %s", x.name, check, status, by, shown(t, rs))
			}
		}
		if !slices.Contains(slices.Collect(maps.Values(of)), broken) {
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

func shown(t *testing.T, rs []*report) string {
	t.Helper()
	var b strings.Builder
	for _, r := range rs {
		if err := r.write(&b, false); err != nil {
			t.Fatal(err)
		}
	}
	return b.String()
}
