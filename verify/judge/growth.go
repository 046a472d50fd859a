package judge

import (
	"context"
	"fmt"
	"maps"
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
	steps []growthStep
	now   int // partitions that have keys or markers, or that the state knows: later ones wait for the next marker
	stale int // keys with an older blob in a former partition
}

type growthStep struct {
	partitions int
	resolved   string // of the marker behind which keys use them
	seek       string // which that marker announces
	vague      bool   // the first marker of the added partitions is deleted, and this is a later one
}

// sampled is how many keys of a partition are looked at to find the former number of partitions. At least doubt of them
// have to speak against the present number in a topic whose start is deleted.
const (
	sampled = 64
	doubt   = 3
)

func (g *growth) grew() bool { return len(g.steps) > 0 }

// counts returns the present number of partitions, and the former ones, or those that may have been.
func (g *growth) counts() []int {
	all := []int{g.first}
	for _, s := range g.steps {
		for n := all[len(all)-1] + 1; s.vague && n < s.partitions; n++ {
			all = append(all, n)
		}
		all = append(all, s.partitions)
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
		at := "behind"
		if s.vague {
			at = "at the latest behind"
		}
		text += fmt.Sprintf(", and %d %s the marker %s", s.partitions, at, s.resolved)
	}
	return text
}

// partition returns the validator of partitions.
func (g *growth) partition(of func([]byte, int) int32) *verify.Partition {
	p := verify.NewPartition(g.first, of)
	for _, s := range g.steps {
		p.Grows(s.partitions, s.resolved, s.seek, s.vague)
	}
	return p
}

// partitions returns over how many partitions the bridge spreads keys now, 0 if it has not stored that.
func (s *progressState) partitions(topic string) int {
	if s == nil {
		return 0
	}
	if n := s.Frontier.Topics[topic]; n > 0 {
		return int(n)
	}
	for _, c := range s.Cursors {
		if c != nil && c.Pins[topic].Partitions > 0 {
			return int(c.Pins[topic].Partitions)
		}
	}
	return 0
}

// learn finds the growth of a topic. Known is the number that the state has, 0 if there is none.
func (s *subject) learn(ctx context.Context, known int, of func([]byte, int) int32) (err error) {
	heads, err := s.heads(ctx)
	if err != nil {
		return err
	}
	g := &s.growth
	if g.now = known; known == 0 {
		g.now = len(s.to)
	}
	for p := range heads {
		g.now = max(g.now, int(p)+1)
	}
	g.now = min(g.now, len(s.to))
	if s.before > 0 {
		g.first = min(s.before, g.now)
		s.grow(known, heads)
		return nil
	}
	g.first = g.now
	// The partitions from least on may have been added.
	least, cut := g.now, false
	for ; least > 1; least-- {
		p := int32(least - 1)
		if s.cut(p) {
			cut = true
		} else if h := heads[p]; h != nil && (h.Key != nil || !s.beginsWithMarker(p)) {
			break
		}
	}
	if least == g.now {
		return nil
	}
	by, err := s.vote(ctx, least, heads, cut, of)
	switch {
	case err != nil:
		return err
	case cut:
		return s.vaguely(ctx, least, by)
	case len(by) > 0:
		sum := make(votes, g.now-least+1)
		for _, v := range by {
			for i, n := range v {
				sum[i] += n
			}
		}
		g.first = least + sum.best()
	default: // all begin with a marker
		for g.first = 1; g.first < g.now && markOf(heads[int32(g.first)]) == markOf(heads[0]); {
			g.first++
		}
	}
	s.grow(known, heads)
	return nil
}

// grow finds the steps in which partitions were added to the first ones.
func (s *subject) grow(known int, heads map[int32]*verify.Record) {
	g := &s.growth
	for p := g.first; p < g.now && heads[int32(p)] != nil; p++ {
		if p > g.first && markOf(heads[int32(p)]) == markOf(heads[int32(p-1)]) {
			g.steps[len(g.steps)-1].partitions++
			continue
		}
		at := markOf(heads[int32(p)])
		g.steps = append(g.steps, growthStep{partitions: p + 1, resolved: at.resolved, seek: at.seek})
	}
	g.now = max(known, g.counts()[0])
}

// heads returns the first record, or marker, of each partition that has one.
func (s *subject) heads(ctx context.Context) (map[int32]*verify.Record, error) {
	heads := map[int32]*verify.Record{}
	err := s.scan(ctx, func(r verify.Record) (more bool) {
		heads[r.Partition] = &r
		return false
	})
	clear(s.markers) // that is not how far the topic was read
	return heads, err
}

// cut reports whether retention deleted the start of a partition, or of its markers.
func (s *subject) cut(p int32) bool {
	return s.deleted(p) || s.beside != nil && s.beside.deleted(p)
}

// beginsWithMarker reports, of a partition whose first record is a marker, whether that was the first one ever:
// compaction removes others, but not markers, which have a topic of their own then.
func (s *subject) beginsWithMarker(p int32) bool {
	return s.aside == nil || s.aside.First(p) == 0
}

// mark names a marker.
type mark struct{ resolved, seek string }

func markOf(r *verify.Record) mark {
	if r == nil {
		return mark{}
	}
	return mark{r.MarkerTime(), string(r.Header("seek"))}
}

// votes counts the keys that are where a number of partitions puts them: by that number, from the least one on.
type votes []int

// best returns the index of the number that most keys are for: of the present one, if no other is better.
func (v votes) best() int {
	best := len(v) - 1
	for i := range slices.Backward(v) {
		if v[i] > v[best] {
			best = i
		}
	}
	return best
}

// vote asks the first keys of each partition for the number of partitions, out of those from least to the present one.
// Cut says that starts of partitions are deleted; else only keys before the first marker of any added partition count.
func (s *subject) vote(
	ctx context.Context, least int, heads map[int32]*verify.Record, cut bool, of func([]byte, int) int32,
) (map[int32]votes, error) {
	by, seen, until := map[int32]votes{}, map[int32]int{}, ""
	for p := least; p < s.growth.now; p++ {
		if at := markOf(heads[int32(p)]).resolved; until == "" || at != "" && before(at, until) {
			until = at
		}
	}
	err := s.scan(ctx, func(r verify.Record) (more bool) {
		if r.Key == nil {
			return cut || until == "" || before(r.MarkerTime(), until)
		}
		v := by[r.Partition]
		if v == nil {
			v = make(votes, s.growth.now-least+1)
			by[r.Partition] = v
		}
		for i := range v {
			if of(r.Key, least+i) == r.Partition {
				v[i]++
			}
		}
		seen[r.Partition]++
		return seen[r.Partition] < sampled
	})
	return by, err
}

// before compares the times of markers.
func before(a, b string) bool {
	x, _ := envelope.ParseTimestamp(a)
	y, _ := envelope.ParseTimestamp(b)
	return x.Compare(y) < 0
}

// vaguely finds the growth of a topic whose partitions have lost their starts, each another part. A former number is
// believed only if keys of a partition speak for it. All added partitions were used at the latest behind
// the last of the first markers that are left in them.
func (s *subject) vaguely(ctx context.Context, least int, by map[int32]votes) error {
	g := &s.growth
	best := g.now
	for _, v := range by {
		if i := v.best(); v[i] >= v[len(v)-1]+doubt {
			best = min(best, least+i)
		}
	}
	if best == g.now {
		return nil
	}
	last, seen, at := mark{}, map[int32]bool{}, s.topic
	if s.beside != nil {
		at = s.beside
	}
	from, to := maps.Clone(at.from), maps.Clone(at.to)
	for p := range int32(best) {
		delete(from, p)
		delete(to, p)
	}
	err := at.read(ctx, from, to, func(r verify.Record) (more bool) {
		if first := markOf(&r); r.Key == nil && !seen[r.Partition] {
			seen[r.Partition] = true
			if last == (mark{}) || before(last.resolved, first.resolved) {
				last = first
			}
		}
		return !seen[r.Partition]
	})
	clear(s.markers)
	g.first = best
	g.steps = []growthStep{{partitions: g.now, resolved: last.resolved, seek: last.seek, vague: true}}
	return err
}
