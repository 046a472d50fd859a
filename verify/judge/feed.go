package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/offsets"
	"blobfeed/resolved"
	"blobfeed/source"
	"blobfeed/verify"
)

// feedScan is one scan of the feed, for all judged topics.
type feedScan struct {
	v      *verification
	filter envelope.Filter
	dead   *letters
	passed *passed            // what was delivered, by the state; nil: there is none
	sought sought             // what seeks may have skipped, by the markers
	guess  *guess             // of the topic's part of the feed; nil: it is known
	end    envelope.Timestamp // of what is delivered; zero: there is none

	of     map[string]*comparison // by topic
	only   *comparison            // of all events; nil: a template gives each event its topic
	stray  map[string]int64       // events for topics that the state does not know
	extent extent
	says   envelope.Timestamp // of the marker of the segment that is read
	over   []finished
	read   int64 // events

	buf []byte // of rec
	rec envelope.Record

	inquiry *inquiry // of a second scan: which expected records are looked up
}

// block compares the events of a block.
func (p *feedScan) block(m source.Manifest, shard int, b *source.Batch) error {
	covered := p.v.state == nil || status.Covers(p.v.state.State, m.Segment, shard, b.Next)
	pos := source.Position{Segment: m.Segment, Shard: shard, Chunk: b.Chunk, Offset: b.Offset}
	if p.v.Reads != nil {
		p.v.Reads.Events.Add(int64(len(b.Events)))
	}
	for i := range b.Events {
		pos.Index = i
		p.read++
		if err := p.event(pos, &b.Events[i], covered); err != nil {
			return &bridge.EventError{Blob: b.Blob, Offset: b.Offset, Index: i, Err: err}
		}
	}
	return nil
}

// event compares an event.
func (p *feedScan) event(pos source.Position, ev *source.Event, covered bool) error {
	match, err := p.filter.Match(ev)
	var c *comparison
	emit, stray := false, ""
	if err == nil && match {
		c, stray, err = p.at(ev)
	}
	if err == nil && c != nil {
		p.buf, emit, err = c.encoder.Append(p.buf[:0], &p.rec, ev, pos)
	}
	dead := p.dead.event(pos, ev)
	if err != nil && dead {
		return nil
	}
	if stray != "" && covered && !dead {
		p.stray[stray]++
	}
	if err == nil && emit && p.v.writer != nil {
		err = p.v.writer.fits(recordOf(&p.rec, p.v.avro))
	}
	switch {
	case !emit || err != nil:
	case p.inquiry != nil:
		p.inquiry.event(c, pos, &p.rec)
	default:
		c.event(pos.Segment, &p.rec, covered, dead)
	}
	return err
}

// at returns the comparison for the topic of an event, or nil if that topic is not judged. Stray is the topic if the
// state does not know it.
func (p *feedScan) at(ev *source.Event) (c *comparison, stray string, err error) {
	if p.only != nil || !p.v.Records.Events.Emits(envelope.Classify(ev)) {
		return p.only, "", nil // the encoder leaves out events that are not emitted
	}
	topic, err := p.v.Topics.Names.Of(ev)
	if err != nil {
		return nil, "", err
	}
	if c = p.of[topic]; c == nil && p.v.Topic == "" {
		stray = topic
	}
	return c, stray, nil
}

// finish adds a finished segment.
func (p *feedScan) finish(m source.Manifest) {
	f := finished{segment: m.Segment, end: m.Begin.Add(m.Interval - segmentSlack)}
	f.says = resolved.After(m, p.v.Records.ResolvedSlack, envelope.Timestamp{})
	p.over = append(p.over, f)
	for _, c := range p.of {
		c.ends = append(c.ends, c.records)
	}
}

// missing returns a report for each topic of stray that the state does not know. Stray counts things, such as "event",
// and has begins the text of the problem: "the feed has".
func (s *progressState) missing(check, promise, has, thing string, stray map[string]int64) (reports []*Report) {
	for _, topic := range slices.Sorted(maps.Keys(stray)) {
		problem := fmt.Sprintf("%s %s for this topic, and %s does not know the topic", has,
			plain.Count(stray[topic], thing), s.topic)
		reports = append(reports, &Report{Topic: topic, Checks: []checkReport{{
			Name: check, Status: Broken, Promise: promise, Failures: []verify.Failure{{Problem: problem}},
		}}})
	}
	return reports
}

// walk reads the feed, and adds to the comparisons what the settings make of each event.
func (v *verification) walk(ctx context.Context, p *feedScan, judged []*judgedTopic) (err error) {
	p.filter, p.of, p.stray = v.Feed.Filter, map[string]*comparison{}, map[string]int64{}
	p.filter.To, p.end = v.Feed.End, v.Feed.End
	if p.filter.From, err = v.start(); err != nil {
		return err
	}
	if p.passed, err = v.state.passed(); err != nil {
		return err
	}
	if p.sought, err = p.seeks(ctx, judged); err != nil {
		return err
	}
	if v.since != nil {
		if v.since.sought = p.sought.at; !v.since.ended && v.Until.Compare(p.sought.at) <= 0 {
			return errNothingNew
		}
	}
	for _, s := range judged {
		c, err := p.compare(ctx, s)
		if err != nil {
			return err
		}
		p.of[s.name] = c
		if _, one := v.Topics.Names.Constant(); one { // under any name: the topic may be a copy
			p.only = c
		}
	}
	if p.dead, err = v.letters(ctx); err != nil { // after the state: it has what the cursors passed
		return err
	}
	var after source.Segment
	if v.since != nil {
		after = v.since.completed
	}
	for l, err := range readAhead(ctx, v.Feed.Source, after) {
		if err != nil {
			return err
		}
		if v.since != nil && !v.since.ended && l.manifest.Segment.Compare(v.since.next) > 0 {
			return nil
		}
		p.extent.ends = l.manifest.Begin.Add(l.manifest.Interval)
		if p.extent.oldest == (source.Segment{}) && after == (source.Segment{}) {
			p.extent.oldest = l.manifest.Segment
		}
		p.says = resolved.After(l.manifest, v.Records.ResolvedSlack, envelope.Timestamp{})
		for i, r := range l.shards { // a blob is in one shard
			if err := p.shard(ctx, l.manifest, l.manifest.Shards[i], r); err != nil {
				return err
			}
		}
		if l.manifest.Finalized {
			p.finish(l.manifest)
		}
	}
	if p.guess != nil {
		p.guessEnd()
	}
	return nil
}

// compare returns the comparison of a topic.
func (p *feedScan) compare(ctx context.Context, s *judgedTopic) (c *comparison, err error) {
	c = &comparison{
		Replay: &verify.Replay{Repeats: !p.v.Kafka.Transactional, Latest: s.compacted},
		pass:   p, encoder: s.encoder, counts: s.growth.counts(), upTo: p.v.Until,
	}
	c.EncodingTime, c.Moves = p.v.Record.Envelope == envelope.Enriched, s.growth.grew()
	c.Returns = p.v.Kafka.Transactional
	if c.cutAt, err = s.cuts(ctx); err != nil {
		return nil, err
	}
	if c.fedFrom, err = s.fedFrom(); err != nil {
		return nil, err
	}
	if p.v.since != nil {
		c.upTo = envelope.Timestamp{} // all of the segments that this round reads
	}
	if p.v.state == nil {
		// Without a state the topic's own markers say what is required, and a first pass finds them.
		span, keys, err := s.span(ctx)
		if err != nil {
			return nil, err
		}
		c.encoder.PinKey(keys) // a replay uses the schema of another topic
		c.again = span.again
		c.upTo = cmp.Or(c.upTo, span.resolved)
		p.guessRange(span)
	}
	return c, err
}

// guess is what a topic without a state says of the part of the feed that it has. The settings may be those of another
// topic: the state of a replay is gone after a clean-up.
type guess struct {
	span
	from, to envelope.Timestamp // by the settings
	ended    bool               // the last marker is of no segment, and of no BRIDGE_END_TIME
}

// guessRange decides whether the settings are those of the topic: then the last marker has their BRIDGE_END_TIME. If
// not, the topic's first event says from where on events are required: the bridge began there, or before.
func (p *feedScan) guessRange(has span) {
	g := &guess{span: has, from: p.filter.From, to: p.filter.To}
	if g.from != (envelope.Timestamp{}) && g.to != (envelope.Timestamp{}) && g.last == g.to {
		return
	}
	p.guess, p.filter.From, p.filter.To = g, envelope.Timestamp{}, envelope.Timestamp{}
}

// guessEnd decides whether the last marker is one for an end time: the feed is that far, and no segment explains it.
func (p *feedScan) guessEnd() {
	g := p.guess
	explained := slices.ContainsFunc(p.over, func(f finished) bool { return f.says == g.last })
	p.end = envelope.Timestamp{}
	if g.last == g.to || !explained && len(p.over) > 0 && p.over[0].says.Compare(g.last) < 0 &&
		g.last.Wall <= p.extent.ends.UnixNano() {
		p.end, g.ended = g.last, g.last != g.to
	}
}

// doubt says why something may be missing from a topic, although it has all that is required. Otherwise it returns "".
func (p *feedScan) doubt(c *comparison) string {
	if n := p.dead.Others; n > 0 && c.Doubtful() > 0 {
		return fmt.Sprintf("topic %s has %s more than the bridge has written by its state: "+
			"they may hide missing events", p.dead.Topic, plain.Count(n, "dead letter"))
	}
	if p.guess == nil {
		return ""
	}
	var none envelope.Timestamp
	var why []string
	g := p.guess
	if missing := c.Doubtful(); missing > 0 {
		why = append(why, plain.Count(missing, "event")+" of the feed may be missing before its first one")
	}
	if g.first.Compare(g.from) < 0 && g.first != none || g.to != none && max(g.newest.Wall, g.last.Wall) > g.to.Wall {
		why = append(why, "it has events outside of BRIDGE_START and BRIDGE_END_TIME")
	}
	if g.ended {
		why = append(why, "its last marker is of no segment, but of an end time")
	}
	if why == nil {
		return ""
	}
	return fmt.Sprintf("no state says which part of the feed the topic has (events from %s to %s): %s. If a replay "+
		"wrote it, set BRIDGE_START and BRIDGE_END_TIME to its --from and --to", day(g.first), day(g.newest),
		strings.Join(why, ", and "))
}

func day(at envelope.Timestamp) string { return time.Unix(0, at.Wall).UTC().Format(time.RFC3339Nano) }

// start returns the time before which the bridge leaves events out.
func (v *verification) start() (envelope.Timestamp, error) {
	s := v.state
	switch {
	case s != nil && s.Frontier.Epoch > 0: // Start is the target of a seek, and the topic may have earlier events
		return envelope.Timestamp{}, nil
	case s != nil && s.Frontier.Start != "":
		return envelope.ParseTimestamp(s.Frontier.Start)
	case s != nil, v.Records.Frozen[offsets.FrozenStart] == "earliest":
		return envelope.Timestamp{}, nil
	case v.Records.Frozen[offsets.FrozenStart] == "latest":
		return envelope.Timestamp{}, fmt.Errorf("comparing the feed: BRIDGE_START=latest, and %s.offsets has no state "+
			"with the time of the start: set BRIDGE_START to that time", v.Name)
	}
	return history.ParseTime(v.Records.Frozen[offsets.FrozenStart])
}

// shard compares the events of a shard, from the first one on.
func (p *feedScan) shard(ctx context.Context, m source.Manifest, shard int, r *source.ShardReader) error {
	lost := func(d *source.DamageError, loss source.Loss) error {
		if d.Kind == source.Gone {
			p.extent.holes = append(p.extent.holes, hole{m.Segment, shard, loss.Chunk, r.Position().Chunk})
			return nil
		}
		at := source.Position{Segment: m.Segment, Shard: shard, Chunk: loss.Chunk, Offset: loss.From}
		return p.dead.covers(ctx, p.v.Feed.Source, at, d, loss)
	}
	return blocks(ctx, r, lost, func(b *source.Batch) error { return p.block(m, shard, b) })
}

// blocks shows the blocks of a shard. Where a chunk is damaged, the reader continues behind the damage unless lost
// returns an error, and the block has the events before it.
func blocks(
	ctx context.Context, r *source.ShardReader, lost func(*source.DamageError, source.Loss) error,
	show func(*source.Batch) error,
) error {
	var b source.Batch
	for {
		err := r.Next(ctx, &b)
		if errors.Is(err, io.EOF) {
			return nil
		}
		if d, is := errors.AsType[*source.DamageError](err); is {
			loss, known, failed := r.Loss(ctx, d)
			if err = failed; failed == nil && !known {
				err = d
			}
			if err == nil {
				r.Skip(loss)
				err = lost(d, loss)
			}
			b.Next = r.Position()
		}
		if err == nil {
			err = show(&b)
		}
		if err != nil {
			return err
		}
	}
}

// segmentSlack is how far outside its segment an event may be.
const segmentSlack = 15 * time.Minute

// finished is a segment that is finalized, and so has a marker after it.
type finished struct {
	segment source.Segment
	end     time.Time          // less segmentSlack
	says    envelope.Timestamp // time of the marker, by the segment's own times
}

// hole is where chunks of a shard are missing before others: retention deletes a segment blob by blob.
type hole struct {
	segment  source.Segment
	shard    int
	from, to int // chunks, to excluded
}

// extent is what the feed still has.
type extent struct {
	oldest source.Segment
	ends   time.Time // of the newest
	holes  []hole
}

// gone reports whether the feed has the event of a record no more.
func (e *extent) gone(r *verify.Record) bool {
	pos, err := source.ParsePosition(string(r.Header("position")))
	return err == nil && (pos.Segment.Compare(e.oldest) < 0 || slices.ContainsFunc(e.holes, func(h hole) bool {
		return h.segment == pos.Segment && h.shard == pos.Shard && h.from <= pos.Chunk && pos.Chunk < h.to
	}))
}

// maxWrong limits the records that are kept to say how they differ.
const maxWrong = 20

// comparison is what the feed requires of a topic.
type comparison struct {
	*verify.Replay
	pass    *feedScan
	encoder *envelope.Encoder
	counts  []int                    // of partitions, now and before
	upTo    envelope.Timestamp       // only events up to it are required; zero: all that the state covers
	cutAt   map[int32]source.Segment // the first segment left of partitions whose start is deleted
	fedFrom time.Time                // segments before are not delivered, because a scan shows what they left
	again   map[int32]*repeated      // what the last seek of a partition has brought again; nil: all
	first   source.Segment           // with a delivered event for the topic
	ends    []int64                  // for each finished segment, how many records there are up to its end

	records int64 // of the feed, which are in the topic if they are delivered
	noted   int64 // of the topic
	given   int64 // events that the settings select
	must    int64 // of them those that are required
	before  int64 // of them those before the start of their partition
	scanned int64 // of them those that an initial scan stands for
	older   int64 // records of segments or chunks that the feed has no more

	wrong []verify.Record // the first records that are not as expected
}

// somePartitions is how many a note names.
const somePartitions = 5

// deleted says which partitions lack their start, and up to where.
func (c *comparison) deleted() string {
	var names []string
	for i, p := range slices.Sorted(maps.Keys(c.cutAt)) {
		if i == somePartitions {
			names = append(names, fmt.Sprintf("and %d more", len(c.cutAt)-i))
			break
		}
		name := fmt.Sprintf("partition %d up to segment %s", p, c.cutAt[p])
		if c.cutAt[p] == endless {
			name = fmt.Sprintf("all of partition %d", p)
		}
		names = append(names, name)
	}
	return strings.Join(names, ", ")
}

// event adds the record of an event. Covered says that the cursors are behind it, and dead that it is a dead letter.
func (c *comparison) event(seg source.Segment, rec *envelope.Record, covered, dead bool) {
	p := c.pass
	c.given++
	delivered, former := p.passed.has(seg, rec.Updated, covered)
	if c.first == (source.Segment{}) && delivered {
		c.first = seg
	}
	counts := (p.v.state != nil || c.upTo != (envelope.Timestamp{})) &&
		(c.upTo == (envelope.Timestamp{}) || rec.Updated.Compare(c.upTo) <= 0)
	scanned := seg.Time().Before(c.fedFrom)
	if scanned {
		counts = false
		c.scanned++
	}
	for _, n := range c.counts {
		if begin, cut := c.cutAt[p.v.Records.Partition(rec.Key, n)]; cut && seg.Compare(begin) <= 0 {
			counts = false
			c.before++
			break
		}
	}
	g, required, doubtful, skip := p.guess, false, false, false
	before := g != nil && (g.first == (envelope.Timestamp{}) || rec.Updated.Compare(g.first) < 0)
	early := before && rec.Updated.Compare(g.from) < 0 // BRIDGE_START leaves it out
	switch {
	case !counts:
	case dead: // by the bridge, or by somebody else
		doubtful = delivered && p.dead.Others > 0
	case !delivered && p.passed.skips(seg), delivered && p.sought.skips(seg, p.says, rec.Updated):
		skip = !early
	case delivered && before:
		doubtful = !early
	default:
		required = delivered
	}
	if required {
		c.must++
	}
	once := required && (former || !c.returned(seg, rec.Key))
	for _, r := range recordsOf(rec, p.v.avro) {
		switch {
		case doubtful:
			c.Doubt(r)
		case skip:
			c.Skip(r)
		case once:
			c.ExpectOnce(r)
		default:
			c.Expect(r, required)
		}
		if !scanned && !before {
			c.records++
		}
	}
}

// returned reports whether the last seek, if it went back to before a segment, has brought all of that again. With
// transactions each finished segment has its marker, so markers count segments, unless the feed has lost one of them.
func (c *comparison) returned(seg source.Segment, key []byte) bool {
	if len(c.again) == 0 || c.pass.v.Until != (envelope.Timestamp{}) { // all came before the marker that is the end
		return true
	}
	a := c.again[c.pass.v.Records.Partition(key, c.counts[0])]
	if a == nil || seg.Compare(a.after) <= 0 {
		return true
	}
	left := a.markers
	for _, f := range slices.Backward(c.pass.over) {
		if f.segment.Compare(a.after) <= 0 {
			break
		}
		left--
	}
	return left > 0 && c.pass.v.Kafka.Transactional && source.Before(c.pass.extent.oldest).Compare(a.after) <= 0
}

// Note implements verify.Validator. Records whose events the feed has no more can't be compared.
func (c *comparison) Note(r verify.Record) {
	if r.Key != nil && c.pass.extent.gone(&r) {
		c.older++
		return
	}
	if r.Key != nil && !r.Scanned() {
		c.noted++
	}
	bad := c.Bad()
	c.Replay.Note(r)
	if c.Bad() > bad && len(c.wrong) < maxWrong {
		c.wrong = append(c.wrong, r)
	}
}

// bound says up to what events are required.
func (c *comparison) bound() string {
	switch {
	case c.upTo != (envelope.Timestamp{}):
		return "the marker " + c.upTo.String()
	case c.pass.v.state != nil:
		return "the cursors in " + c.pass.v.state.topic
	}
	return ""
}

// inquiry finds where in the feed missing events are, and in which fields records differ from the expected ones. It
// scans the feed again: a first scan that kept that of each event would need several times the memory.
type inquiry struct {
	asked map[string][]question // by key
	seen  map[string]int        // how many expected records of these keys came so far
}

// question is a failure, and the record of the topic that is not as expected, if one is.
type question struct {
	failure *verify.Failure
	record  *verify.Record
}

// inquire adds to the failures of the comparison with the feed what a second scan finds.
func (v *verification) inquire(ctx context.Context, t *judgedTopic, r *Report) error {
	q := &inquiry{asked: map[string][]question{}, seen: map[string]int{}}
	i := slices.IndexFunc(r.Checks, func(c checkReport) bool { return c.Name == "replay" })
	if i < 0 {
		return nil
	}
	differ := false
	for j := range r.Checks[i].Failures {
		f := &r.Checks[i].Failures[j]
		if f.Expected == 0 {
			continue
		}
		x := question{failure: f}
		if !f.Lacking {
			at := slices.IndexFunc(t.feed.wrong, func(r verify.Record) bool {
				return r.Partition == f.Partition && r.Offset == f.Offset
			})
			if at < 0 {
				continue
			}
			x.record, differ = &t.feed.wrong[at], true
		}
		q.asked[f.Key] = append(q.asked[f.Key], x)
	}
	if len(q.asked) == 0 {
		return nil
	}
	if differ {
		r.note("if settings were changed after these records were written, compare the records with the former ones: " +
			"bridge verify --config <former file>, or the former values in the environment")
	}
	return v.walk(ctx, &feedScan{v: v, inquiry: q}, []*judgedTopic{t})
}

// event answers the questions about the records of an event.
func (q *inquiry) event(c *comparison, pos source.Position, rec *envelope.Record) {
	asked := q.asked[string(rec.Key)]
	if asked == nil {
		return
	}
	for _, want := range recordsOf(rec, c.pass.v.avro) {
		q.seen[string(rec.Key)]++
		for _, x := range asked {
			switch {
			case x.failure.Expected != q.seen[string(rec.Key)]:
			case x.record == nil:
				id := string(want.EventID())
				x.failure.Problem += fmt.Sprintf("; in the feed it is at %s", pos) + when(id != "", ", with id "+id)
			default:
				x.failure.Problem += ": " + strings.Join(c.Differences(x.record, &want), ", ")
			}
		}
	}
}

const (
	segmentsAhead = 8       // that are opened at the same time, and requests for each
	smallSegment  = 4 << 20 // bytes up to which a segment is read ahead (I9); more take longer than their requests
)

// opened is a segment whose chunks are listed, and read if they are small.
type opened struct {
	manifest source.Manifest
	shards   []*source.ShardReader // as in the manifest
	err      error
	done     chan struct{} // closed when the rest is set
}

// readAhead returns the segments of the feed behind a given one, in order, and opens those behind them meanwhile: a
// small segment would otherwise cost the round trips of its manifest, listings and chunks, one after the other.
func readAhead(
	ctx context.Context, feed *source.Feed, after source.Segment,
) iter.Seq2[*opened, error] {
	return func(yield func(*opened, error) bool) {
		ctx, cancel := context.WithCancel(ctx)
		defer cancel()
		next, stop := iter.Pull2(feed.Segments(ctx, after))
		defer stop()
		var ahead []*opened
		for {
			for len(ahead) < segmentsAhead {
				seg, err, more := next()
				if !more {
					break
				}
				o := &opened{err: err, done: make(chan struct{})}
				ahead = append(ahead, o)
				go func() {
					defer close(o.done)
					if o.err == nil {
						o.err = o.open(ctx, feed, seg)
					}
				}()
			}
			if len(ahead) == 0 {
				return
			}
			o := ahead[0]
			ahead = ahead[1:]
			<-o.done
			if err := cmp.Or(o.err, ctx.Err()); !yield(o, err) || err != nil {
				return
			}
		}
	}
}

func (o *opened) open(ctx context.Context, feed *source.Feed, seg source.Segment) (err error) {
	if o.manifest, err = feed.Manifest(ctx, seg); err != nil { // I7: the status first
		return err
	}
	var polls, reads errgroup.Group
	polls.SetLimit(segmentsAhead)
	for _, shard := range o.manifest.Shards {
		r := feed.Shard(o.manifest, shard, source.ShardPosition{})
		o.shards = append(o.shards, r)
		polls.Go(func() error { return r.Poll(ctx, o.manifest.Finalized) })
	}
	if err := polls.Wait(); err != nil {
		return err
	}
	size := int64(0)
	for _, r := range o.shards {
		size += r.Ahead()
	}
	if size > smallSegment {
		return nil
	}
	reads.SetLimit(segmentsAhead)
	for _, r := range o.shards {
		reads.Go(func() error { r.Prefetch(ctx); return nil })
	}
	return reads.Wait()
}
