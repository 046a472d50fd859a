package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/internal/testing/mutation"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/resolved"
	"blobfeed/source"
)

// change is what the coordinator commits in a step. It holds values only, and nothing that can read.
type change struct {
	parts    []part
	cursor   *offsets.Cursor // of lease 0; nil: it is not written
	frontier offsets.Frontier
	named    *source.Manifest             // of the segment to name behind the markers; nil: none
	encoders map[string]*envelope.Encoder // of the topics that get markers
	passes   bool                         // the frontier passes segments, or ends: its markers are a new promise

	reports []func(*Options) // what to tell when the change is committed
}

// part is a segment, or a marker alone.
type part struct {
	segment source.Segment
	blocks  []*pipeline.Block
	marker  envelope.Timestamp // zero: none
	topics  map[string]int32   // partitions that get the marker
	seek    *offsets.Seek      // which the marker announces
}

func (c *change) report(f func(*Options)) { c.reports = append(c.reports, f) }

// write commits a change: the one place where a new frontier is written. (Lease.Discard repeats the last one.)
func (w *writer) write(c *change) (err error) {
	if marked := slices.ContainsFunc(c.parts, part.marked); c.passes && marked && !w.t.opts.Kafka.Transactional {
		err = w.writeInOrder(c)
	} else {
		err = w.commitChange(c)
	}
	if err != nil {
		return err
	}
	for _, report := range c.reports {
		report(w.t.opts)
	}
	return nil
}

// writeInOrder commits a change that promises something, without transactions: their place takes the order of writes
// (I6). The records are acknowledged before the frontier is written, so no first delivery comes below a marker. The
// frontier is written before its markers. So a crash between them leaves markers that the next owner writes, never a
// marker that no frontier knows, and markers never fall. The next segment is named after the markers, so a key moves to
// another partition only across a marker (I5).
func (w *writer) writeInOrder(c *change) error {
	first := change{cursor: c.cursor, frontier: c.frontier}
	first.frontier.Owed = true
	var last []part // the markers of one segment
	for _, p := range c.parts {
		if p.marked() {
			last = append(last, part{marker: p.marker, topics: p.topics})
			p.marker = envelope.Timestamp{}
		}
		first.parts = append(first.parts, p)
	}
	if err := w.commitChange(&first); err != nil {
		return err
	}
	s, _, err := w.t.instance.view.Get() // which has read that frontier
	if err == nil {
		err = w.t.endedBy(s)
	}
	if err != nil {
		return err
	}
	return w.commitChange(&change{
		parts: last, frontier: c.frontier, named: c.named, encoders: c.encoders,
	})
}

// commitChange writes a change in one transaction. With transactions, its records, markers and documents are visible
// together (I6). Without, the commit writes the documents when all before them is acknowledged.
func (w *writer) commitChange(c *change) error {
	t, f, txn := w.t, &c.frontier, &w.txn
	f.Base = source.Segment{}
	if before := t.epoch.frontier; before != nil && !t.opts.Kafka.Transactional { // repeated from there if it is stale
		f.Base = before.Completed
	}
	tx, err := w.begin()
	if err != nil {
		return err
	}
	txn.segment = f.Completed
	for _, p := range c.parts {
		if err := w.put(tx, p, c); err != nil {
			return err
		}
	}
	if mutation.Split {
		if err := w.end(nil, nil); err != nil {
			return err
		}
		if _, err := w.begin(); err != nil {
			return err
		}
	}
	if m := c.named; m != nil {
		f.Current, f.Shards, f.Ends = m.Segment, m.Shards, m.Begin.Add(m.Interval)
	}
	if c.cursor != nil {
		txn.countInto(c.cursor)
		c.cursor.Ahead, c.cursor.Listed, c.cursor.Failing = 0, 0, false
		if !t.opts.Kafka.Transactional {
			c.cursor.Resolved = f.Resolved
		}
	}
	return w.end(c.cursor, f)
}

// put writes the records of a part, and the marker behind them, with the gap and the seek that it announces.
func (w *writer) put(tx *offsets.Tx, p part, c *change) error {
	t, f, txn := w.t, &c.frontier, &w.txn
	for i, b := range p.blocks {
		p.blocks[i] = nil // it is the client's
		sent, err := w.produce(b)
		if err != nil {
			return err
		}
		sent.Done()
	}
	if p.segment != (source.Segment{}) {
		txn.segment = p.segment
		txn.segments++
	}
	if !p.marked() {
		return nil
	}
	marker := resolved.Marker{At: p.marker, Seek: p.seek, Gap: f.Gap, Extra: w.t.epoch.epochHeader}
	if t.opts.Topics.Shared {
		marker.Feed = t.opts.Feed.ID
	}
	if f.Scan != nil && f.Scan.Only {
		marker.Scan = f.Scan.ID
	}
	if t.opts.Records.Markers == envelope.MarkersTopic {
		var err error
		if marker.End, err = w.endOffsets(tx, p.topics); err != nil {
			return err
		}
	}
	records := marker.Records(p.topics, c.encoders)
	txn.markers += len(records)
	f.Gap = nil
	return tx.Mark(t.held, records)
}

func (p part) marked() bool { return p.marker != (envelope.Timestamp{}) }

// split takes the topics that are found in what a seek repeats out of a part: they get a marker of their own, none if
// it has no time.
func (p part) split(own envelope.Timestamp, found []string) []part {
	theirs := part{marker: own, topics: map[string]int32{}, seek: p.seek}
	if !p.marked() || len(found) == 0 {
		return []part{p}
	}
	p.topics = maps.Clone(p.topics)
	for _, topic := range found {
		theirs.topics[topic] = p.topics[topic]
		delete(p.topics, topic)
	}
	return []part{p, theirs}
}

// endOffsets reads where the partitions of topics end: the one read of a change while its transaction is open.
//
// I6: the barrier is behind us, so every record of the segment is written and below the end of its partition: by others
// and committed, or, in a bundle, by this transaction, which is flushed. Not below the last stable offset: the ends of
// transactions are written some moments after the commit was acknowledged.
//
// The brokers abort a transaction that is open for too long, and a bundle reads behind each of its segments. So the
// reading gives up when half of that time is over, and the tenure ends.
func (w *writer) endOffsets(
	tx *offsets.Tx, counts map[string]int32,
) (func(topic string, partition int32) int64, error) {
	t := w.t
	if err := tx.Flush(t.held); err != nil {
		return nil, err
	}
	var ends kadm.ListedOffsets
	if len(counts) > 0 { // else the request is for all
		ctx, cancel := context.WithDeadlineCause(t.held, w.txn.began.Add(t.opts.Kafka.TxnTimeout/2), errEndsUnknown)
		defer cancel()
		names := slices.Sorted(maps.Keys(counts))
		err := t.instance.retry(ctx, t.p, func(ctx context.Context) (err error) {
			ends, err = topics.Offsets(ctx, kadm.NewClient(t.instance.client).ListEndOffsets, names...)
			return err
		})
		if err != nil {
			return nil, fmt.Errorf("reading the ends of the topics: %w", err)
		}
	}
	return func(topic string, partition int32) int64 {
		end, _ := ends.Lookup(topic, partition)
		return end.Offset
	}, nil
}

var errEndsUnknown = errors.New("the brokers have not answered for half of the time that a transaction may be open")
