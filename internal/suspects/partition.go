package suspects

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/topics"
)

// partition looks for the keys of one partition of a topic. It reads the partition once for each class of keys that
// fits into its memory, and a part of it once more if there are suspects: only then are whole keys in memory.
type partition struct {
	client  []kgo.Opt
	topic   string
	number  int32
	encoder *envelope.Encoder
	scan    string // the ID of the scan
	limit   int    // bytes that the hashes of keys may take
	passed  int64  // the suspects below this offset are not shown

	from, rows, to int64 // offsets of the partition: rows is the first row of the scan, or to if there is none
	skipped        int64 // live keys that are no paths of blobs
}

// atOnce is how many suspects are in memory.
const atOnce = 1000

// find reads the partition to its present end. It calls found with some suspects, and the offset below which found has
// had all of them, and reads the next ones when found returns.
func (p *partition) find(ctx context.Context, found func(keys []Suspect, to int64) error) error {
	if err := p.begin(ctx); err != nil {
		return p.explain(err)
	}
	live := newKeySet(p.to-p.from, p.limit)
	for left := []class{{}}; len(left) > 0; {
		live.class, left = left[len(left)-1], left[:len(left)-1]
		more, err := p.compare(ctx, live)
		if err != nil {
			return err
		}
		left = append(left, more...)
		// The suspects of one class may stay while the next one is read.
		if len(left) > 0 && live.count < len(live.slots)/4 {
			continue
		}
		if err := p.fetch(ctx, live, found); err != nil {
			return err
		}
	}
	return nil
}

func (p *partition) explain(err error) error {
	return fmt.Errorf("looking for lost deletions in partition %d of %s: %w", p.number, p.topic, err)
}

// begin finds out where the partition begins and ends. What counts is the end of all records, and not of those that can
// be read already: a transaction of another lease that is open, or whose end has not reached this partition, hides
// committed records behind it, and among them may be deletions that this scan has written. Reading waits for it.
func (p *partition) begin(ctx context.Context) error {
	cl, err := kgo.NewClient(append(slices.Clone(p.client), kgo.WithContext(ctx))...)
	if err != nil {
		return err
	}
	defer cl.Close()
	ends, err := topics.Offsets(ctx, kadm.NewClient(cl).ListEndOffsets, p.topic)
	if err != nil {
		return err
	}
	starts, err := topics.Offsets(ctx, kadm.NewClient(cl).ListStartOffsets, p.topic)
	if err != nil {
		return err
	}
	end, ended := ends.Lookup(p.topic, p.number)
	start, started := starts.Lookup(p.topic, p.number)
	if !ended || !started {
		return errors.New("the topic does not have this partition")
	}
	p.from, p.rows, p.to = start.Offset, end.Offset, end.Offset
	return nil
}

// each reads the partition up to an offset.
func (p *partition) each(ctx context.Context, to int64, show func(*kgo.Record) (more bool)) error {
	reading := topics.Reading{
		Client: p.client, Topic: p.topic,
		From: map[int32]int64{p.number: p.from}, To: map[int32]int64{p.number: to},
	}
	if err := reading.Each(ctx, show); err != nil {
		return p.explain(err)
	}
	return nil
}

// compare adds the suspects of live's class. If there are more keys than fit, it returns the classes that it has left
// out.
func (p *partition) compare(ctx context.Context, live *keySet) (more []class, err error) {
	listed := false
	err = p.each(ctx, p.to, func(r *kgo.Record) bool {
		// No history is lost behind the first row of the scan: if the feed deletes a key that it writes there, the
		// topic has the deletion, or will have it.
		if !listed && p.isRow(r) {
			listed, p.rows = true, r.Offset
		}
		if r.Key == nil { // a marker
			return true
		}
		switch hash := live.hash(r.Key); {
		case !live.class.has(hash):
		case listed || p.encoder.Deletes(r.Value):
			live.remove(hash)
		default:
			more = append(more, live.add(hash)...)
		}
		return true
	})
	return more, err
}

// fetch calls found with the keys of live, in the order of their first records, and empties it.
func (p *partition) fetch(ctx context.Context, live *keySet, found func(keys []Suspect, to int64) error) error {
	var keys []Suspect
	var failed error
	all := live.class == class{} // else other classes have suspects at the same offsets
	pass := func(to int64) {
		if !all {
			to = 0
		}
		if len(keys) > 0 {
			failed = found(keys, to)
		}
		keys = nil
	}
	if live.count == 0 {
		return nil
	}
	err := p.each(ctx, p.rows, func(r *kgo.Record) (more bool) {
		if r.Key == nil || !live.remove(live.hash(r.Key)) {
			return true
		}
		container, name, ok := p.encoder.Path(r.Key)
		switch {
		case !ok:
			p.skipped++
		case !all || r.Offset >= p.passed:
			keys = append(keys, Suspect{container, name})
		}
		if len(keys) == atOnce {
			pass(r.Offset + 1)
		}
		return failed == nil && live.count > 0
	})
	if err == nil && failed == nil {
		pass(p.rows)
	}
	live.clear() // compaction has removed the others meanwhile
	return cmp.Or(err, failed)
}

// isRow reports whether the scan has written a record.
func (p *partition) isRow(r *kgo.Record) bool {
	return slices.ContainsFunc(r.Headers, func(h kgo.RecordHeader) bool {
		return h.Key == envelope.ScanHeader && string(h.Value) == p.scan
	})
}
