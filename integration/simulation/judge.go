package simulation

import (
	"cmp"
	"context"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// judge reads the topics as a consumer does, and knows what has to be there.
type judge struct {
	*world
	cl   *kgo.Client
	opts []kgo.Opt

	mu      sync.Mutex
	events  []*expected
	at      map[string]*expected // by position; an event can be twice in the log
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
		world: w, at: map[string]*expected{}, lanes: map[lane][]verify.Record{}, letters: map[string]int{},
		from: map[lane]int64{}, next: map[lane]int64{},
	}
	var err error
	if j.opts, err = w.client("judge", l); err != nil {
		return nil, err
	}
	topics := []string{"^" + topicName + ".*", "^" + regexp.QuoteMeta(deadLetters) + "$"}
	if w.plan.Traced {
		topics = append(topics, "^"+regexp.QuoteMeta(plain.StateTopic(name))+"$")
	}
	read := append(slices.Clone(j.opts), kgo.ConsumeRegex(), kgo.ConsumeTopics(topics...),
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
	j.at[x.Position()] = x
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

// damaged says that a block can't be read. If the damage is permanent, a seek will go past it.
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
			if e := j.at[string(records[k].Header("position"))]; e != nil && records[k].Offset >= ends[l] {
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
		Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value,
		Millis: r.Timestamp.UnixMilli(),
	}
	for _, h := range r.Headers {
		v.Headers = append(v.Headers, verify.Header(h))
	}
	if j.tracer.committed(r) {
		return
	}
	j.whole.committed(r)
	if r.Topic == deadLetters {
		j.letters[string(v.Header("position"))]++
		return
	}
	j.lanes[at] = append(j.lanes[at], v)
	if e := j.at[string(v.Header("position"))]; e != nil && r.Offset >= j.from[at] {
		e.seen++
	}
}

func (l lane) compare(o lane) int {
	return cmp.Or(cmp.Compare(l.topic, o.topic), cmp.Compare(l.partition, o.partition))
}
