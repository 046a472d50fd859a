package judge

import (
	"context"
	"fmt"
	"slices"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/verify"
)

// growth is over how many partitions the keys of a topic are spread. Keys use added partitions behind a marker only,
// and that marker is the first record of each of them (I5). So the first records of partitions say what was added when.
//
// But a partition that had no key before the first marker also begins with a marker. The first keys decide what it is:
// they are where the former number of partitions puts them, or where the present one does.
type growth struct {
	first int // partitions at first
	steps []verify.Growth
	now   int   // partitions that have keys or markers, or that the state knows: later ones wait for the next marker
	stale int64 // keys with an older blob in a former partition
}

// doubt is how many keys of a partition at least have to speak against the present number of partitions, in a topic
// whose start is deleted.
const doubt = 3

func (g *growth) grew() bool { return len(g.steps) > 0 }

// counts returns the present number of partitions, and the former ones, or those that may have been.
func (g *growth) counts() []int {
	all := []int{g.first}
	for _, s := range g.steps {
		for n := all[len(all)-1] + 1; s.Vague && n < s.Partitions; n++ {
			all = append(all, n)
		}
		all = append(all, s.Partitions)
	}
	slices.Reverse(all)
	return all
}

// added reports whether a partition was added, and is in use.
func (g *growth) added(p int32) bool { return int(p) >= g.first && int(p) < g.counts()[0] }

// String returns the numbers of partitions, in the order of time.
func (g growth) String() string {
	text := plain.Count(g.first, "partition")
	for _, s := range g.steps {
		at := "behind the marker " + s.Resolved
		switch marker, err := envelope.ParseTimestamp(s.Resolved); {
		case err != nil || marker == (envelope.Timestamp{}):
			at = "without a marker"
		case s.Vague:
			at = "at the latest " + at
		}
		text += fmt.Sprintf(", and %d %s", s.Partitions, at)
	}
	return text
}

// learn finds the growth of a topic, up to the marker until if it is not zero. Known is the number that the state has,
// 0 if there is none.
func (s *judgedTopic) learn(
	ctx context.Context, known int, until envelope.Timestamp, of func([]byte, int) int32,
) error {
	if until != (envelope.Timestamp{}) {
		known = 0 // the state is newer
	}
	if err := s.readHeads(ctx, until); err != nil {
		return err
	}
	g := &s.growth
	if g.now = known; known == 0 {
		g.now = len(s.to)
	}
	for p := range s.heads {
		g.now = max(g.now, int(p)+1)
	}
	g.now = min(g.now, len(s.to))
	if s.resumed != nil {
		g.first = min(s.resumed.partitions, g.now)
		s.grow(known)
		return nil
	}
	g.first = g.now
	// The partitions from least on may have been added.
	least, cut := g.now, false
	for ; least > 1; least-- {
		p := int32(least - 1)
		if s.markersOf().deleted(p) {
			cut = true
		} else if h := s.heads[p]; h != nil && (h.Key != nil || s.aside != nil && s.aside.First(p) != 0) {
			// Compaction removes other records, but not markers, which have a topic of their own then: that its first
			// one names the offset 0 says that the partition began with a marker.
			break
		}
	}
	if least == g.now {
		return nil
	}
	starts, err := s.starts(ctx, least, of)
	if err != nil {
		return err
	}
	if cut {
		s.vaguely(starts)
		return nil
	}
	// Those that begin with the first of all markers may also have had no key before it: the keys of others decide.
	earliest := mark{}
	for _, x := range starts {
		if earliest == (mark{}) || x.first != (mark{}) && x.first.before(earliest) {
			earliest = x.first
		}
	}
	most := least
	for most < g.now && starts[most].first == earliest {
		most++
	}
	fits := func(n int) bool { // keys before a later marker may be of a later number
		return !slices.ContainsFunc(starts, func(x start) bool {
			return x.first == earliest && !slices.Contains(x.counts, n)
		})
	}
	for g.first = most; g.first > least && !fits(g.first); {
		g.first--
	}
	s.grow(known)
	return nil
}

// grow finds the steps in which partitions were added to the first ones.
func (s *judgedTopic) grow(known int) {
	g := &s.growth
	for p := g.first; p < g.now && s.heads[int32(p)] != nil; p++ {
		at := markOf(s.heads[int32(p)])
		if p > g.first && at == markOf(s.heads[int32(p-1)]) {
			g.steps[len(g.steps)-1].Partitions++
			continue
		}
		g.steps = append(g.steps, verify.Growth{Partitions: p + 1, Resolved: at.at.String(), Seek: at.seek})
	}
	g.now = max(known, g.counts()[0])
}

// readHeads reads the heads, but for markers after until.
func (s *judgedTopic) readHeads(ctx context.Context, until envelope.Timestamp) error {
	s.heads = map[int32]*verify.Record{}
	err := s.readAll(ctx, func(r verify.Record) (more bool) {
		if at, ok := markerTime(&r); !ok || until == (envelope.Timestamp{}) || at.Compare(until) <= 0 {
			s.heads[r.Partition] = &r
		}
		return false
	})
	clear(s.markers) // that is not how far the topic was read
	return err
}

// mark names a marker.
type mark struct {
	at   envelope.Timestamp
	seek string
}

// before reports whether a marker has an earlier time than another one.
func (m mark) before(other mark) bool { return m.at.Compare(other.at) < 0 }

func markOf(r *verify.Record) mark {
	at, _ := markerTime(r)
	return mark{at, string(r.Header("seek"))}
}

// start is what a partition has before its first marker, and so under one number of partitions.
type start struct {
	keys   int
	counts []int // the numbers of partitions that put all of these keys where they are
	first  mark
}

// starts returns the starts of the partitions. Counts are out of those from least on.
func (s *judgedTopic) starts(ctx context.Context, least int, of func([]byte, int) int32) ([]start, error) {
	all := make([]start, len(s.to))
	for p := range all {
		for n := least; n <= s.growth.now; n++ {
			all[p].counts = append(all[p].counts, n)
		}
	}
	err := s.readAll(ctx, func(r verify.Record) (more bool) {
		x := &all[r.Partition]
		if r.Key == nil {
			x.first = markOf(&r)
			return false
		}
		x.keys++
		x.counts = slices.DeleteFunc(x.counts, func(n int) bool { return of(r.Key, n) != r.Partition })
		return true
	})
	clear(s.markers)
	return all, err
}

// vaguely finds the growth of a topic whose partitions have lost their starts, each another part. A former number is
// believed only if it puts several keys of a partition where they are, and the present number does not. All added
// partitions were used at the latest behind the last of the first markers that are left in them.
func (s *judgedTopic) vaguely(starts []start) {
	g := &s.growth
	for _, x := range starts {
		if x.keys >= doubt && len(x.counts) > 0 && !slices.Contains(x.counts, g.now) {
			g.first = min(g.first, x.counts[0])
		}
	}
	if g.first == g.now {
		return
	}
	last := mark{}
	for _, x := range starts[g.first:g.now] {
		if last.before(x.first) {
			last = x.first
		}
	}
	g.steps = []verify.Growth{{Partitions: g.now, Resolved: last.at.String(), Seek: last.seek, Vague: true}}
}
