package judge

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Nothing says of a copy which events a seek has brought again, but the copy itself: that a key ends on an older event
// than before is found, and that the seek is still repeating is no fault.
func TestCopyAfterASeek(t *testing.T) {
	for _, settings := range []string{"", "RESOLVED_TO=topic", "HEADERS=none", "DELIVERY=at_least_once"} {
		t.Run(settings, func(t *testing.T) {
			s := stage(t, t, form{settings: settings, then: func(t *testing.T, _ *liveFeed) { seek(t, "2026/01/01/0100") }})
			faults := faults()
			lost := &faults[slices.IndexFunc(faults, func(f fault) bool {
				return f.name == "the newest of a key does not come again"
			})]
			c := s.clone()
			if !lost.put(s.victim(c)) {
				t.Fatal("there is no place for it")
			}
			if rs, of := s.verify(t, c, true, true); of["replay"] != Broken {
				t.Errorf("%s: not found: %s", lost.name, shown(t, rs))
			}
			if settings == "RESOLVED_TO=topic" { // its markers would have to end, too
				return
			}
			for p, rs := range s.topics[written].records {
				at := slices.IndexFunc(rs, func(r *kgo.Record) bool { return r.Key == nil && header(r, "seek") != "" })
				for end := at + 1; end < len(rs); end++ {
					c := s.clone()
					c.topics[written].records[p], c.topics[written].to[p] = rs[:end], rs[end].Offset
					reports, _ := s.verify(t, c, true, true)
					for _, k := range reports[0].Checks {
						if k.Name == "replay" && strings.Contains(fmt.Sprint(k.Failures), "is not the last one") {
							t.Fatalf("partition %d, up to %d of %d: %s", p, end, len(rs), shown(t, reports))
						}
					}
				}
			}
		})
	}
}
