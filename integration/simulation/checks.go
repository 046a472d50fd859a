package simulation

import (
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/arrivals"
	"blobfeed/partitioner"
	"blobfeed/verify"
)

// needed reports whether the event has to come as a record.
func (j *judge) needed(e *expected) bool {
	return !e.removed && !e.skipped && !(e.damaged && j.plan.DeadLetters)
}

// missing returns the events that have to come and have not.
func (j *judge) missing() (all []*expected) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.seen == 0 && j.needed(e) {
			all = append(all, e)
		}
	}
	return all
}

// check returns what does not hold. Whole says that everything was to be delivered.
func (j *judge) check(whole bool) (problems []string) {
	f := j.frontier() // before the lock: nobody may wait for a mutex while time is to pass
	j.mu.Lock()
	defer j.mu.Unlock()
	complete := arrivals.New()
	lost := 0
	for _, e := range j.events {
		switch {
		case whole && j.needed(e) || e.seen > 0:
			complete.Expect(e.ID)
			if e.seen == 0 && !j.plan.Scans {
				problems = append(problems, fmt.Sprintf("event %s at %s did not come", e.ID, e.Position()))
			}
		case e.removed && !e.skipped && !e.damaged:
			lost++
		}
		at := fmt.Sprintf("%s/%02d/%05d/%d/0", e.Segment, e.Shard, e.Chunk, e.BlockOffset)
		if whole && e.damaged && j.plan.DeadLetters && !e.removed && !e.skipped && j.letters[at] == 0 {
			there := slices.Sorted(maps.Keys(j.letters))
			problems = append(problems, fmt.Sprintf("no dead letter has position %s; there are %v", at, there))
		}
	}
	if whole && lost > 0 && j.target == "" && len(j.from) == 0 {
		if f == nil || f.Gaps == 0 {
			problems = append(problems,
				fmt.Sprintf("%d events were removed and not delivered, and the frontier counts no gap", lost))
		}
	}
	if j.plan.Scans {
		if complete = nil; whole && f != nil {
			problems = append(j.promised(f), j.barred(f)...)
		}
		if whole && j.plan.End.IsZero() {
			problems = append(problems, j.differs(math.MaxInt64, "")...)
		}
	}
	old, fresh := j.validators(nil), j.validators(complete)
	for _, l := range slices.SortedFunc(maps.Keys(j.lanes), lane.compare) {
		for _, r := range j.lanes[l] {
			if plain.IsMarkerTopic(l.topic) {
				if !j.plan.ExactlyOnce {
					continue // what comes again may be below
				}
				problems = append(problems, j.reached(r)...)
				continue
			}
			if r.Offset < j.from[l] {
				old.Note(r)
			} else {
				fresh.Note(r)
			}
		}
	}
	problems = append(problems, j.together()...)
	for _, f := range slices.Concat(old.Failures(), fresh.Failures()) {
		problems = append(problems, f.String())
	}
	if j.plan.ExactlyOnce && !j.plan.Classic {
		problems = append(problems, j.whole.torn()...)
	}
	if j.plan.Traced {
		if err := j.tracer.follow(j.events); err != nil {
			problems = append(problems, err.Error())
		}
	}
	if !whole {
		return problems
	}
	return append(problems, j.again()...)
}

// together checks that all records of a key between two markers are in one partition (I5). Markers are counted from the
// last one back: that one is in every partition, and partitions that were added later lack the first ones.
func (j *judge) together() (problems []string) {
	if !j.plan.ExactlyOnce {
		return nil // what comes again may be in the partition of before
	}
	markers := map[lane][]int64{}
	for l, records := range j.lanes {
		for _, r := range records {
			var says struct {
				Resolved  string
				Partition int32
				Offset    int64
			}
			switch {
			case r.Key != nil || r.Offset < j.from[l]:
			case !plain.IsMarkerTopic(l.topic):
				markers[l] = append(markers[l], r.Offset)
			case json.Unmarshal(r.Value, &says) == nil:
				of := lane{plain.RecordTopic(l.topic), says.Partition}
				markers[of] = append(markers[of], says.Offset)
			}
		}
	}
	type interval struct {
		topic, key string
		following  int // markers
	}
	where := map[interval]lane{}
	for l, records := range j.lanes {
		slices.Sort(markers[l])
		for _, r := range records {
			if r.Key == nil || r.Offset < j.from[l] {
				continue
			}
			at, _ := slices.BinarySearch(markers[l], r.Offset+1)
			in := interval{l.topic, string(r.Key), len(markers[l]) - at}
			if other, known := where[in]; known && other != l {
				problems = append(problems, fmt.Sprintf(
					"%s: key %s is in partitions %d and %d, with %d markers behind it in both",
					l.topic, r.Key, other.partition, l.partition, in.following))
			}
			where[in] = l
		}
	}
	return problems
}

// reached checks a marker in the topic of markers: the records at or below its time are below its offset.
func (j *judge) reached(marker verify.Record) (problems []string) {
	var says struct {
		Resolved  string
		Partition int32
		Offset    int64
	}
	if err := json.Unmarshal(marker.Value, &says); err != nil {
		return []string{fmt.Sprintf("parsing the marker %q: %v", marker.Value, err)}
	}
	at := lane{plain.RecordTopic(marker.Topic), says.Partition}
	if marker.Offset < j.from[lane{marker.Topic, marker.Partition}] {
		return nil // of before a reset
	}
	for _, r := range j.lanes[at] {
		if updated := string(r.Header("updated")); r.Offset >= says.Offset && updated <= says.Resolved {
			problems = append(problems, fmt.Sprintf(
				"%s, partition %d, offset %d: updated %s is at or below the marker %s",
				r.Topic, r.Partition, r.Offset, updated, marker.Value))
		}
	}
	return problems
}

// never is the time of a marker that does not come.
const never = "9000000000000000000.0000000000"

// validators returns the checks of the plan's promises.
func (j *judge) validators(complete *arrivals.Events) *verify.Group {
	partitions := cmp.Or(j.grown, j.plan.Partitions)
	order, resolved := verify.NewOrder(), verify.NewResolved(partitions)
	place := verify.NewPartition(j.plan.Partitions, partitioner.Murmur2)
	unique := verify.NewUnique()
	if j.grown > 0 {
		unique.Moves = true
		// where finds keys that moved without a marker
		place = verify.NewPartition(j.plan.Partitions, partitioner.Murmur2,
			verify.Growth{Partitions: partitions, Resolved: never, Vague: true})
		for p := j.plan.Partitions; p < j.grown; p++ {
			resolved.StartsLate(int32(p), true)
		}
	}
	var all []verify.Validator
	if complete != nil {
		all = append(all, complete)
	}
	if !j.plan.ExactlyOnce {
		return verify.All(append(all, place, newFirsts(j))...)
	}
	all = append(all, order, place, resolved, unique)
	if j.grown == 0 {
		all = append(all, verify.NewSequence())
	}
	return verify.All(all...)
}

// again checks that what the last seek went back to came again, behind its marker.
func (j *judge) again() (problems []string) {
	if j.target == "" {
		return nil
	}
	came, marked := map[string]bool{}, map[string]bool{} // positions, topics
	for l, records := range j.lanes {
		behind := -1
		for k := range records {
			if seek := records[k].Header("seek"); records[k].Key == nil && strings.HasSuffix(string(seek),
				" "+j.target) {
				behind, marked[l.topic] = k, true
			}
		}
		for k := range records {
			if behind >= 0 && k > behind && records[k].Offset >= j.from[l] {
				came[string(records[k].Header("position"))] = true
			}
		}
	}
	for l, records := range j.lanes { // topics and partitions that were added later have nothing from before the seek
		for k := range records {
			if !marked[l.topic] || int(l.partition) >= j.plan.Partitions {
				came[string(records[k].Header("position"))] = true
			}
		}
	}
	if len(marked) == 0 {
		return []string{"no marker tells of the seek to " + j.target}
	}
	n := 0
	var first *expected
	for _, e := range j.events {
		if e.Segment >= j.target && j.needed(e) && !came[e.Position()] {
			if n++; first == nil {
				first = e
			}
		}
	}
	if n > 0 {
		problems = append(problems, fmt.Sprintf(
			"%d events did not come behind the marker of the seek to %s, the first is %s",
			n, j.target, first.Position()))
	}
	return problems
}
