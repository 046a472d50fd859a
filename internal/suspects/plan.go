package suspects

import (
	"context"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/partitioner"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// Plan is what a sweep would do now. Its JSON is the answer of the verb.
type Plan struct {
	Keys     int64 `json:"keys"`  // that live in the topics, once for each partition
	Blobs    int64 `json:"blobs"` // of the account
	Requests int64 `json:"list_requests"`
	Heads    int64 `json:"head_requests"` // a scan needs as many list requests, and these
	// Deletions are at most that many: the feed may deliver some of them by itself.
	Deletions int64 `json:"deletions"`
	Skipped   int64 `json:"skipped,omitempty"` // keys that are no paths of blobs
	// Sample is how many keys there are for each that was compared. If it is more than 1, the counts are estimates.
	Sample int64 `json:"sample"`
}

// Account is what a plan compares the topics with. Options have the Scan.
type Account struct {
	Inventory  inventory.Store
	Requests   int // at a time
	Topics     *envelope.Topics
	Partition  partitioner.Func
	Partitions map[string]int32 // of the topics, by the frontier
}

// Prepare counts what a sweep would do. It writes nothing. Of more keys than fit into its memory, it compares a sample,
// so that it lists the account once.
func Prepare(ctx context.Context, o Options, a Account) (*Plan, error) {
	p, err := newPlanner(ctx, o, a)
	if err != nil {
		return nil, err
	}
	return p.plan(ctx)
}

func newPlanner(ctx context.Context, o Options, a Account) (*planner, error) {
	p := &planner{o: o, a: a, encoders: map[string]*envelope.Encoder{}, first: map[string]int32{}}
	lanes := int32(0)
	for _, topic := range slices.Sorted(maps.Keys(a.Partitions)) {
		encoder, err := o.Encoder(ctx, topic)
		if err != nil {
			return nil, err
		}
		p.encoders[topic], p.first[topic] = encoder, lanes
		lanes += a.Partitions[topic]
		for number := range a.Partitions[topic] {
			of := &partition{client: o.Client, topic: topic, number: number, encoder: encoder}
			if err := of.begin(ctx); err != nil {
				return nil, of.explain(err)
			}
			p.partitions = append(p.partitions, of)
			p.records += of.to - of.from
		}
	}
	return p, nil
}

// planner makes a plan.
type planner struct {
	o          Options
	a          Account
	encoders   map[string]*envelope.Encoder
	first      map[string]int32 // number of the first partition of a topic, among those of all topics
	partitions []*partition
	records    int64
}

// plan reads the topics, and then lists the account: a key that was written between the two is not compared.
func (p *planner) plan(ctx context.Context) (*Plan, error) {
	var plan Plan
	live := newKeySet(p.records, p.o.Bytes)
	for _, s := range p.partitions {
		lane := p.first[s.topic] + s.number
		err := s.each(ctx, s.to, func(r *kgo.Record) bool {
			switch hash := live.hash(r.Key); {
			case r.Key == nil || !live.class.has(hash):
			case s.encoder.Deletes(r.Value):
				live.remove(inLane(hash, lane))
			case p.selects(s.encoder, r.Key, &plan.Skipped):
				live.add(inLane(hash, lane))
			}
			return true
		})
		if err != nil {
			return nil, err
		}
	}
	plan.Keys = int64(live.count)
	if err := p.list(ctx, live, &plan); err != nil {
		return nil, err
	}
	plan.Deletions = int64(live.count)
	plan.Heads += plan.Deletions
	plan.Sample = 1 << live.class.bits
	for _, n := range []*int64{&plan.Keys, &plan.Heads, &plan.Deletions} {
		*n *= plan.Sample
	}
	return &plan, nil
}

// inLane returns the hash of a key in a partition. The low bits stay, so that all of them are of one class.
func inLane(hash uint64, lane int32) uint64 {
	return max(hash^(uint64(lane)*0x9e3779b97f4a7c15)<<16, 1)
}

// selects reports whether a scan lists the blob of a key.
func (p *planner) selects(e *envelope.Encoder, key []byte, skipped *int64) bool {
	container, name, ok := e.Path(key)
	if !ok {
		*skipped++
		return false
	}
	return p.o.Scan.Sweeps(container, name) && p.o.Filter.Path(container, name)
}

// list removes the keys of blobs. A key that lives in another partition than its row, or that has no row, would be
// asked for.
func (p *planner) list(ctx context.Context, live *keySet, plan *Plan) error {
	var one sync.Mutex
	var buf []byte
	var rec envelope.Record
	blob := func(container string, b *inventory.Blob) error {
		ev := source.Event{Subject: envelope.SubjectOf(container, b.Name), BlobType: b.BlobType,
			EventTime: "1970-01-01T00:00:00Z"} // of the key nothing else matters
		topic, err := p.a.Topics.Of(&ev)
		encoder := p.encoders[topic]
		if err != nil || encoder == nil {
			return err
		}
		if buf, err = encoder.AppendRow(buf[:0], &rec, &ev, &envelope.Scan{}); err != nil {
			return err
		}
		n := p.a.Partitions[topic]
		row := p.a.Partition(rec.Key, int(n))
		if !p.o.Filter.MatchRow(&ev) {
			row = -1
		}
		hash := live.hash(rec.Key)
		for at := range n {
			if live.remove(inLane(hash, p.first[topic]+at)) && at != row {
				plan.Heads++
			}
		}
		return nil
	}
	options := inventory.Options{Container: p.o.Scan.Container, Mine: p.o.Filter.Selects, Requests: p.a.Requests,
		Prefix: func(container string) string {
			prefix, _ := p.o.Filter.Prefix(container)
			return p.o.Scan.Narrowed(prefix)
		}}
	step := func(_ context.Context, s *inventory.Step) error {
		one.Lock()
		defer one.Unlock()
		if s.Listed == nil {
			return nil
		}
		plan.Requests++
		plan.Blobs += int64(len(s.Listed.Blobs))
		for i := range s.Listed.Blobs {
			if b := &s.Listed.Blobs[i]; strings.HasPrefix(b.Name, p.o.Scan.Prefix) {
				if err := blob(s.Container, b); err != nil {
					return err
				}
			}
		}
		return nil
	}
	return inventory.Walk(ctx, p.a.Inventory, inventory.Progress{}, options, step)
}
