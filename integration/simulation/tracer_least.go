package simulation

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/protocol"
	"blobfeed/offsets"
	"blobfeed/source"
)

// leastTracer notes what the brokers take from producers without transactions. The lock of its tracer guards it.
type leastTracer struct {
	*tracer
	sequences map[stream]int32
	terms     map[producer]*term // of the last owner record of a producer
	ends      map[int32]int64    // by lease: of the partition of the state topic
}

// producer is one of the idempotent producers.
type producer struct {
	id    int64
	epoch int16
}

// stream is what a producer writes to a partition.
type stream struct {
	producer
	topic     string
	id        [16]byte // of the topic, in newer requests
	partition int32
}

// term is an acquisition of a lease: what its producer has written since its owner record.
type term struct {
	instance string // "" of a verb
	lease    int32
	offset   int64
	events   map[string]bool           // positions
	blocks   map[protocol.Block]int    // events of each
	markers  map[string]map[int32]bool // by time: the partitions that have it
}

// written is a record, or several of events.
type written struct {
	*term
	kind      protocol.EventKind
	offset    int64
	value     []byte // of a document
	frontier  bool   // that is one
	positions []string
	resolved  string
	partition int32
}

func newLeastTracer(t *tracer) *leastTracer {
	return &leastTracer{t, map[stream]int32{}, map[producer]*term{}, map[int32]int64{}}
}

// produced notes what a request brings that the brokers are about to handle.
func (t *leastTracer) produced(r *kmsg.ProduceRequest) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, topic := range r.Topics {
		for _, p := range topic.Partitions {
			var b kmsg.RecordBatch
			if err := b.ReadFrom(p.Records); err != nil {
				t.fail("a batch of partition %d: %v", p.Partition, err)
				return
			}
			by := producer{b.ProducerID, b.ProducerEpoch}
			at := stream{by, topic.Topic, topic.TopicID, p.Partition}
			if b.FirstSequence != t.sequences[at] {
				continue // it is repeated
			}
			t.sequences[at] += b.NumRecords
			for rest := b.Records; len(rest) > 0; {
				length, n := binary.Varint(rest)
				var r kmsg.Record
				if err := r.ReadFrom(rest); n <= 0 || err != nil {
					t.fail("a record of partition %d: %v", p.Partition, err)
					return
				}
				rest = rest[n+int(length):]
				t.took(by, p.Partition, &r)
			}
		}
	}
}

// took notes a record.
func (t *leastTracer) took(by producer, partition int32, r *kmsg.Record) {
	w := &written{term: t.terms[by], value: r.Value, partition: partition}
	switch key := string(r.Key); key {
	case "owner", "cursor", "frontier", "request", "delivered":
		w.offset = t.ends[partition]
		t.ends[partition]++
		switch key {
		case "owner":
			var o struct{ Owner string }
			if err := json.Unmarshal(r.Value, &o); err != nil {
				t.fail("an owner record: %v", err)
			}
			if o.Owner == verb {
				o.Owner = ""
			}
			w.kind, w.term = protocol.Owns, &term{
				instance: o.Owner, lease: partition, offset: w.offset, events: map[string]bool{},
				blocks: map[protocol.Block]int{}, markers: map[string]map[int32]bool{},
			}
			t.terms[by] = w.term
		case "cursor", "frontier":
			w.kind, w.frontier = protocol.Writes, key == "frontier"
		default:
			return
		}
	default:
		header := func(key string) string {
			k := slices.IndexFunc(r.Headers, func(h kmsg.Header) bool { return h.Key == key })
			if k < 0 {
				return ""
			}
			return string(r.Headers[k].Value)
		}
		if r.Key == nil {
			w.kind, w.resolved = protocol.Marks, header("resolved")
			break
		}
		w.kind, w.positions = protocol.Delivers, []string{header("position")}
		if n := len(t.events); n > 0 { // several of a batch are one event
			if last := t.events[n-1].written; last != nil && last.term == w.term && last.kind == w.kind {
				last.positions = append(last.positions, w.positions...)
				return
			}
		}
	}
	if w.term == nil {
		t.fail("a record of a producer without an owner record: key %q", r.Key)
		return
	}
	t.events = append(t.events, traceEvent{written: w})
}

// trace returns what the bridge did, or what no owner may write.
func (t *leastTracer) trace(expected []*expected) (trace protocol.LeastTrace, err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	whole := map[protocol.Block]int{}
	for _, e := range expected {
		whole[blockOf(e)]++
	}
	trace.Bundles = t.plan.Bundle > 0
	promised := map[string]uint8{"": 0} // by time: behind which segment
	for _, e := range t.events {
		if w := e.written; w != nil && w.frontier {
			var f offsets.Frontier
			if err := json.Unmarshal(w.value, &f); err != nil {
				return trace, err
			}
			if _, known := promised[f.Resolved]; !known {
				promised[f.Resolved] = number(f.Completed)
			}
		}
	}
	for _, e := range t.events {
		l := protocol.LeastEvent{Kind: e.Kind, Instance: e.Instance, Lease: e.Lease, Seen: e.Seen}
		switch w := e.written; {
		case e.cursor != nil:
			l.Document = protocol.LeastDocument{Document: cursorOf(e.cursor)}
		case w != nil:
			if l, err = t.event(w, whole, promised); err != nil {
				return trace, err
			}
		case e.Kind != protocol.Starts && e.Kind != protocol.Finalized:
			return trace, fmt.Errorf("%s in a run without transactions", e.Kind)
		}
		trace.Events = append(trace.Events, l)
	}
	return trace, nil
}

// event returns the event of what was written.
func (t *leastTracer) event(
	w *written, whole map[protocol.Block]int, promised map[string]uint8,
) (e protocol.LeastEvent, err error) {
	e = protocol.LeastEvent{
		Kind: w.kind, Instance: w.instance, Lease: int(w.lease), Term: w.term.offset, Offset: w.offset,
	}
	switch w.kind {
	case protocol.Writes:
		stored := int64(0)
		if w.frontier {
			var f offsets.Frontier
			err = json.Unmarshal(w.value, &f)
			e.Document, stored = leastFrontier(&f, promised), f.Term
		} else {
			var c offsets.Cursor
			err = json.Unmarshal(w.value, &c)
			e.Document, stored = protocol.LeastDocument{Document: cursorOf(&c), Resolved: promised[c.Resolved]}, c.Term
		}
		if err == nil && (stored != w.term.offset+1 || w.partition != w.lease) {
			err = fmt.Errorf("%s, lease %d, of the owner record at %d: a document names term %d in partition %d",
				w.instance, w.lease, w.term.offset, stored, w.partition)
		}
	case protocol.Delivers:
		for _, position := range w.positions {
			x := t.judge.at[position] // its lock is held
			if x == nil {
				return e, fmt.Errorf("nobody expects an event at %q", position)
			}
			b := blockOf(x)
			if !slices.Contains(e.Events, b) {
				e.Events = append(e.Events, b)
			}
			if w.events[position] {
				continue
			}
			w.events[position] = true
			if w.blocks[b]++; w.blocks[b] == whole[b] {
				e.Whole = append(e.Whole, b)
			}
		}
	case protocol.Marks:
		has := w.markers[w.resolved]
		if has == nil {
			has = map[int32]bool{}
			w.markers[w.resolved] = has
		}
		if has[w.partition] {
			return e, fmt.Errorf("%s, lease %d writes marker %s to partition %d once more before all have it",
				w.instance, w.lease, w.resolved, w.partition)
		}
		if has[w.partition] = true; len(has) == t.plan.Partitions {
			e.Last = true
			clear(has)
		}
		var known bool
		if e.Marker, known = promised[w.resolved]; !known {
			return e, fmt.Errorf("a marker for %s, which no frontier promises", w.resolved)
		}
	}
	return e, err
}

func leastFrontier(f *offsets.Frontier, promised map[string]uint8) protocol.LeastDocument {
	d := protocol.LeastDocument{
		Document: frontierOf(f, nil), Owed: f.Owed, Resolved: promised[f.Resolved], Seen: f.Seen,
		NoMarkers: len(f.Topics) == 0 || f.Resolved == "",
	}
	if f.Base != (source.Segment{}) {
		d.Base = number(f.Base)
	}
	return d
}
