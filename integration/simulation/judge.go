package simulation

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/feedsim"
	"blobfeed/partitioner"
	"blobfeed/verify"
)

// judge reads the topics as a consumer does, and knows what has to be there.
type judge struct {
	*world
	cl   *kgo.Client
	opts []kgo.Opt

	mu      sync.Mutex
	events  []*expected
	byID    map[string]*expected
	lanes   map[lane][]verify.Record
	letters map[string]int // by position
	from    map[lane]int64 // what is before it was written before the last reset
	next    map[lane]int64 // what is below was read
	grown   int            // partitions of the topic, if they were added
	target  string         // of the last seek: what has to come again behind its marker
}

// lane is a partition of a topic.
type lane struct {
	topic     string
	partition int32
}

// expected is an event of the feed.
type expected struct {
	feedsim.Event
	seen    int
	removed bool // from the feed, by retention
	skipped bool // by a seek
	damaged bool
}

func newJudge(w *world, l *link) (*judge, error) {
	j := &judge{
		world: w, byID: map[string]*expected{}, lanes: map[lane][]verify.Record{}, letters: map[string]int{},
		from: map[lane]int64{}, next: map[lane]int64{},
	}
	var err error
	if j.opts, err = w.client("judge", l); err != nil {
		return nil, err
	}
	read := append(slices.Clone(j.opts),
		kgo.ConsumeRegex(), kgo.ConsumeTopics("^"+topicName+".*", "^"+regexp.QuoteMeta(deadLetters)+"$"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.MetadataMaxAge(metadataAge), kgo.KeepControlRecords(), kgo.FetchMaxPartitionBytes(1<<20))
	j.cl, err = kgo.NewClient(read...)
	return j, err
}

// expect says that an event has to come. It is not in the feed yet.
func (j *judge) expect(e feedsim.Event) {
	if e.Key == "" || len(j.plan.Containers) > 0 && !slices.Contains(j.plan.Containers, e.Container) {
		return
	}
	if end := j.plan.End; !end.IsZero() {
		if at, err := time.Parse(time.RFC3339Nano, e.EventTime); err != nil || at.After(end) {
			return
		}
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	x := &expected{Event: e}
	j.events = append(j.events, x)
	j.byID[e.ID] = x
}

// removed says that retention removes a blob of a segment. What goes before one was named is no loss.
func (j *judge) removed(name, segment string, started bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.Segment == segment && (strings.HasSuffix(name, "/meta.json") || name == e.blob()) {
			e.removed, e.skipped = true, e.skipped || !started
		}
	}
}

func (e *expected) blob() string {
	return fmt.Sprintf("log/%02d/%s/%05d.avro", e.Shard, e.Segment, e.Chunk)
}

// damaged says that a block can't be read; if that is for ever, a seek will go past it.
func (j *judge) damaged(d *wound, forever bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	for _, e := range j.events {
		if e.blob() == d.blob && e.BlockOffset == d.at {
			e.damaged, e.skipped = true, e.skipped || forever
		}
	}
}

// sought says that everything from a segment on is to come again, and what is before it and has not come need not.
func (j *judge) sought(target string, skips func(*expected) bool) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.target = target
	for _, e := range j.events {
		if e.seen == 0 && skips(e) {
			e.skipped = true
		}
	}
}

// forget begins again: everything that the feed has is to be delivered, behind what is there.
func (j *judge) forget(ends map[lane]int64) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.from, j.target = ends, ""
	for _, e := range j.events {
		e.seen, e.skipped = 0, false
	}
	for l, records := range j.lanes {
		for k := range records {
			if e := j.byID[string(records[k].Header("ce_id"))]; e != nil && records[k].Offset >= ends[l] {
				e.seen++
			}
		}
	}
	clear(j.letters)
}

// read reads until ctx ends.
func (j *judge) read(ctx context.Context) {
	for {
		fs := j.cl.PollFetches(ctx)
		if ctx.Err() != nil {
			return
		}
		fs.EachRecord(j.note)
		fs.EachError(func(topic string, p int32, err error) {
			j.logf("the judge reads partition %d of %s: %v", p, topic, err)
		})
	}
}

func (j *judge) note(r *kgo.Record) {
	j.mu.Lock()
	defer j.mu.Unlock()
	at := lane{r.Topic, r.Partition}
	if r.Offset < j.next[at] {
		return // the client went back
	}
	j.next[at] = r.Offset + 1
	if r.Attrs.IsControl() {
		return
	}
	v := verify.Record{
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Millis: r.Timestamp.UnixMilli(),
	}
	for _, h := range r.Headers {
		v.Headers = append(v.Headers, verify.Header(h))
	}
	if r.Topic == deadLetters {
		j.letters[string(v.Header("position"))]++
		return
	}
	j.lanes[at] = append(j.lanes[at], v)
	if e := j.byID[string(v.Header("ce_id"))]; e != nil && r.Offset >= j.from[at] {
		e.seen++
	}
}

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
	complete := verify.NewComplete()
	lost := 0
	for _, e := range j.events {
		switch {
		case whole && j.needed(e) || e.seen > 0:
			complete.Expect(e.ID)
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
	old, fresh := j.validators(nil), j.validators(complete)
	for _, l := range slices.SortedFunc(maps.Keys(j.lanes), lane.compare) {
		for _, r := range j.lanes[l] {
			if strings.HasSuffix(l.topic, ".resolved") {
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
	for _, f := range slices.Concat(old.Failures(), fresh.Failures()) {
		problems = append(problems, f.String())
	}
	if !whole {
		return problems
	}
	return append(problems, j.again()...)
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
	at := lane{strings.TrimSuffix(marker.Topic, ".resolved"), says.Partition}
	if marker.Offset < j.from[lane{marker.Topic, marker.Partition}] {
		return nil // of before a reset
	}
	for _, r := range j.lanes[at] {
		if updated := string(r.Header("updated")); r.Offset >= says.Offset && updated <= says.Resolved {
			problems = append(problems, fmt.Sprintf("%s, partition %d, offset %d: updated %s is at or below the marker %s",
				r.Topic, r.Partition, r.Offset, updated, marker.Value))
		}
	}
	return problems
}

func (l lane) compare(o lane) int {
	return cmp.Or(cmp.Compare(l.topic, o.topic), cmp.Compare(l.partition, o.partition))
}

// validators returns the checks of the plan's promises.
func (j *judge) validators(complete *verify.Complete) *verify.Group {
	partitions := cmp.Or(j.grown, j.plan.Partitions)
	order, resolved := verify.NewOrder(), verify.NewResolved(partitions)
	place := verify.NewPartition(partitions, partitioner.Murmur2)
	if j.grown > 0 {
		order.Moves()
		place.GrownFrom(j.plan.Partitions)
		for p := j.plan.Partitions; p < j.grown; p++ {
			resolved.Late(int32(p), true)
		}
	}
	var all []verify.Validator
	if complete != nil {
		all = append(all, complete)
	}
	if !j.plan.ExactlyOnce {
		return verify.All(append(all, place, newFirsts(j))...)
	}
	all = append(all, order, place, resolved, verify.NewUnique(), verify.NewProgress(), verify.NewBarrier())
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
	came, marked := map[string]bool{}, map[string]bool{} // ids, topics
	for l, records := range j.lanes {
		behind := -1
		for k := range records {
			if seek := records[k].Header("seek"); records[k].Key == nil && strings.HasSuffix(string(seek), " "+j.target) {
				behind, marked[l.topic] = k, true
			}
		}
		for k := range records {
			if behind >= 0 && k > behind && records[k].Offset >= j.from[l] {
				came[string(records[k].Header("ce_id"))] = true
			}
		}
	}
	for l, records := range j.lanes { // topics and partitions that were added later have nothing from before the seek
		for k := range records {
			if !marked[l.topic] || int(l.partition) >= j.plan.Partitions {
				came[string(records[k].Header("ce_id"))] = true
			}
		}
	}
	if len(marked) == 0 {
		return []string{"no marker tells of the seek to " + j.target}
	}
	n := 0
	var first *expected
	for _, e := range j.events {
		if e.Segment >= j.target && j.needed(e) && !came[e.ID] {
			if n++; first == nil {
				first = e
			}
		}
	}
	if n > 0 {
		problems = append(problems, fmt.Sprintf("%d events did not come behind the marker of the seek to %s, the first is %s",
			n, j.target, first.Position()))
	}
	return problems
}
