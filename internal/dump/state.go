package dump

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"blobfeed/offsets"
)

// State prints what a bridge keeps in its state topic.
func (d Dumper) State(s *offsets.State) error {
	if f := s.Frontier; f != nil {
		if err := d.print(map[string]any{"key": "frontier", "value": f},
			"frontier  completed %s  current %s  resolved %s  feed %s  by %s at %s",
			cmp.Or(f.Completed.String(), "-"), cmp.Or(f.Current.String(), "-"), cmp.Or(f.Resolved, "-"),
			f.Feed, f.Owner, f.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	for lease, cur := range s.Cursors {
		if cur == nil {
			continue
		}
		where := "as far as the frontier"
		if !cur.Over(s.Frontier) {
			where = fmt.Sprintf("segment %s  done %-5t ", cur.Segment, cur.Done)
			for _, name := range slices.Sorted(maps.Keys(cur.Shards)) {
				where += fmt.Sprintf(" %s:%s", name, cur.Shards[name])
			}
		}
		doc := map[string]any{"key": "cursor", "lease": lease, "owner": s.Owners[lease], "value": cur}
		if err := d.print(doc, "lease %-3d %s  events %d  by %s at %s",
			lease, where, cur.Counts.Read, s.Owners[lease], cur.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}
