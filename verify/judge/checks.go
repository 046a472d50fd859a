package judge

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/verify"
)

// check is a promise, and the validator that checks it.
type check struct {
	name, promise string
	unless        string // why it does not apply; "": it does
	validator     validator
	first         bool // with at-least-once delivery it holds for the first record of each event only
	optional      bool // there may be nothing to check
}

const replayPromise = "the topic has every event of the feed, with the same bytes, each blob's in order"

// validator is one that counts what it has judged.
type validator interface {
	verify.Validator
	Checked() int64
}

// checks are those of a topic.
type checks struct {
	all      []check
	unique   *verify.Unique
	resolved *verify.Resolved // nil: it is not checked
	scan     *verify.Scan
	seen     *verify.Seen // nil: no event may come twice
}

// checks returns all checks. A setting or a flag that leaves one out is among the reasons of its line.
func (v *verification) checks(t *judgedTopic) *checks {
	c := &checks{unique: verify.NewUnique(), scan: verify.NewScan()}
	has := contentOf(v.Record)
	headers := v.Record.Headers != envelope.HeadersNone
	keys, values := v.Record.KeyFormat == envelope.KeyAvro, v.Record.Format == envelope.Avro
	bounded := func(why string) string { return when(v.Bounded, "--bounded: "+why) }
	repeats := when(!v.Kafka.Transactional, "BRIDGE_DELIVERY=at_least_once: events may be repeated")
	unnamed := when(!has.event, "with these settings a record does not identify its event")
	place := verify.NewPartition(t.growth.first, v.Records.Partition, t.growth.steps...)
	indistinct := "" // why repeated events can't be told from first ones
	if t.growth.grew() {
		c.unique.Moves = true
	}
	if !v.Kafka.Transactional {
		c.seen = verify.NewSeen()
		place.Repeats = true
		indistinct = cmp.Or(bounded(repeats), when(!has.event, repeats+", and "+unnamed))
	}
	noMarkers := cmp.Or(indistinct,
		when(v.Records.Markers == envelope.MarkersOff, "BRIDGE_RESOLVED_TO=off: there are no markers"))
	if noMarkers == "" {
		c.resolved = t.resolvedTimes()
	}
	timeless := ""
	if !has.time {
		timeless = " (with these settings records have no time, so records after a marker can't be judged)"
		if c.resolved != nil {
			c.resolved.Timeless = true
		}
	}
	order := verify.NewOrder()
	order.Exact = v.Kafka.Transactional
	c.all = []check{{
		name:      "unique",
		promise:   "no event comes twice",
		unless:    cmp.Or(repeats, bounded("order and partition together prove the same"), unnamed),
		validator: c.unique,
	}, {
		name:      "order",
		promise:   "on each partition, no segment is after a later one, and a shard's events are in order, each once",
		unless:    cmp.Or(indistinct, when(!headers, "the position is in a header, and BRIDGE_HEADERS=none")),
		validator: order,
		first:     true,
	}, {
		name:    "sequence",
		promise: "each blob's sequencers never decrease",
		unless: cmp.Or(indistinct,
			when(headers, "order proves more: the feed's order, whatever the sequencers are"),
			bounded("it needs some hundred bytes per key"), unnamed,
			when(!has.sequencer, "with these settings a record has no sequencer")),
		validator: verify.NewSequence(),
		first:     true,
	}, {
		name: "partition",
		promise: fmt.Sprintf("each key is on the partition that %s gives for %s",
			v.Records.Frozen[offsets.FrozenPartitioner], t.growth),
		validator: place,
	}, {
		name:      "schema",
		promise:   "keys and values in Avro have a schema of the registry",
		unless:    when(v.avro == nil || !keys && !values, "nothing is in Avro"),
		validator: verify.NewSchema(keys, values),
	}, {
		name:      "time",
		promise:   "each record has the time of its event",
		validator: verify.NewTime(),
		optional:  true, // brokers may set the timestamps, and values may have no time
	}, {
		name:      "resolved",
		promise:   "after a marker R no updated <= R; markers never decrease, and reach every partition" + timeless,
		unless:    noMarkers,
		validator: c.resolved,
		first:     true,
		optional:  t.fresh,
	}, {
		name:      "scan",
		promise:   "an initial scan's rows precede the feed, and have one time; no marker is below their listing",
		validator: c.scan,
		first:     true,
		optional:  true,
	}, {
		name:      "replay",
		promise:   replayPromise,
		unless:    when(t.feed == nil, "without --feed"),
		validator: t.feed,
	}}
	for i := range c.all {
		if k := &c.all[i]; k.first && c.seen != nil {
			k.promise += " (first record of each event)"
		}
	}
	return c
}

// validators returns those of the checks that apply: to every record, and to the first record of each event only.
func (c *checks) validators() (every, firsts *verify.Group) {
	var all [2][]verify.Validator
	for _, k := range c.all {
		switch {
		case k.unless != "":
		case k.first && c.seen != nil:
			all[1] = append(all[1], k.validator)
		default:
			all[0] = append(all[0], k.validator)
		}
	}
	return verify.All(all[0]...), verify.All(all[1]...)
}

func when(is bool, reason string) string {
	if is {
		return reason
	}
	return ""
}

// resolvedTimes returns the validator of the markers of a topic.
func (s *judgedTopic) resolvedTimes() *verify.Resolved {
	v := verify.NewResolved(len(s.to))
	v.Repeats, v.Headers = !s.v.Kafka.Transactional, s.v.Record.Headers != envelope.HeadersNone
	v.Feed = s.v.state.feed()
	markers := s.markersOf()
	if markers != s.topic {
		v.Ends = s.to
	}
	for p := range s.to { // a topic of markers can have fewer, until the bridge adds them
		unused := int(p) >= s.growth.now
		if markers.deleted(p) || unused || s.growth.added(p) {
			v.StartsLate(p, unused || markers.deleted(p) && s.emptied(p))
		}
	}
	return v
}

// emptied reports whether retention has left no marker of the judged bridge on a partition whose start it deleted. The
// end of a transaction can be left, or what others wrote.
func (s *judgedTopic) emptied(p int32) bool {
	if s.aside != nil {
		return s.aside.First(p) < 0
	}
	return s.heads[p] == nil
}

// content says what every record has under some settings, also that of a deletion.
type content struct{ event, time, account, sequencer bool }

func contentOf(o envelope.Options) content {
	has := content{event: true, time: true, account: true, sequencer: true}
	for _, eventType := range []string{"BlobCreated", "BlobDeleted"} {
		for _, r := range sample(o, eventType) {
			event, time, sequencer := r.Has()
			has.event, has.time, has.account = has.event && event, has.time && time, has.account && r.Account() != ""
			has.sequencer = has.sequencer && (sequencer || eventType == "BlobDeleted")
		}
	}
	return has
}

// sample returns the records of an event of a type, as the options make them.
func sample(o envelope.Options, eventType string) []verify.Record {
	schemas := map[int]string{}
	o.Topic, o.Register = "sample", func(s envelope.Subject) (int, error) {
		schemas[len(schemas)] = s.Schema
		return len(schemas) - 1, nil
	}
	encoder, err := envelope.NewEncoder(o)
	if err != nil {
		return nil
	}
	ev := source.Event{EventType: eventType, EventTime: "2026-01-01T00:00:00.0000000Z",
		Topic:   "/subscriptions/s/resourceGroups/r/providers/Microsoft.Storage/storageAccounts/a",
		Subject: "/blobServices/default/containers/c/blobs/b", Sequencer: "1",
		ID: "00000000-0000-0000-0000-000000000000"}
	var rec envelope.Record
	if _, emit, err := encoder.Append(nil, &rec, &ev, source.Position{}); err != nil || !emit {
		return nil
	}
	return recordsOf(&rec, verify.NewAvro(func(id int) (string, error) { return schemas[id], nil }))
}

// recordOf returns a record as the encoder made it.
func recordOf(rec *envelope.Record, avro *verify.Avro) verify.Record {
	r := verify.Record{Key: rec.Key, Value: rec.Value, Millis: rec.Millis, Avro: avro}
	r.Headers = make([]verify.Header, len(rec.Headers))
	for i, h := range rec.Headers {
		r.Headers[i] = verify.Header(h)
	}
	return r
}

// recordsOf returns the record of an event, and the tombstone behind it, if it has one.
func recordsOf(rec *envelope.Record, avro *verify.Avro) []verify.Record {
	all := []verify.Record{recordOf(rec, avro)}
	if rec.Tombstone {
		second := all[0]
		second.Value = nil
		all = append(all, second)
	}
	return all
}

// expect passes the validator the markers that the feed explains.
func (s *judgedTopic) expect() {
	p, c := s.pass, s.checks
	if c.resolved == nil {
		return
	}
	for _, f := range p.over {
		if p.end == (envelope.Timestamp{}) || f.says.Compare(p.end) <= 0 {
			c.resolved.Expect(f.says.String())
		}
	}
	if p.end != (envelope.Timestamp{}) {
		c.resolved.Expect(p.end.String())
	}
	if s.v.state.scansOnly() {
		c.resolved.Expect(s.v.state.Frontier.Scan.Listed)
	}
}

// due passes the validator the required markers: those of each segment that is delivered, by the state, or without a
// state by what the topic has.
func (s *judgedTopic) due() {
	p, c, v := s.pass, s.feed, s.checks.resolved
	until := p.v.Until
	from := p.filter.From.Wall // the bridge may have left out segments before its start
	if p.guess != nil {
		from = p.guess.first.Wall
	}
	var last, most envelope.Timestamp // that was due, and that is promised: a marker is never below the one before
	all, ends := true, p.end != (envelope.Timestamp{})
	for i, f := range p.over {
		began := envelope.Timestamp{Wall: f.segment.Time().UnixNano()}
		delivered, _ := p.passed.has(f.segment, began, s.delivered(i))
		if all = delivered; !all && p.passed == nil {
			break
		}
		if f.says.Compare(most) > 0 {
			most = f.says
		}
		if _, one := p.v.Topics.Names.Constant(); !one &&
			(c.first == (source.Segment{}) || f.segment.Compare(c.first) < 0) {
			continue // the topic did not exist yet
		}
		switch {
		case !delivered, p.sought.skips(f.segment, f.says, began), s.barred(most), began.Wall < from,
			until != (envelope.Timestamp{}) && most.Compare(until) > 0:
			continue
		case ends && (f.end.UnixNano() > p.end.Wall || i+1 == len(p.over) ||
			p.over[i+1].segment.Time().UnixNano() > p.end.Wall+int64(segmentSlack)):
			continue // its marker has the end of all, if the bridge knew by then that it is the last
		}
		last = most
		if p.v.Kafka.Transactional { // else only the last of a run of small segments is written
			v.Require(last.String())
		}
	}
	switch n := len(p.over); {
	case !ends:
	case p.v.state != nil && p.v.state.Frontier.Ended,
		p.v.state == nil && all && n > 0 && p.over[n-1].says.Compare(p.end) > 0:
		last = p.end
	}
	if last != (envelope.Timestamp{}) {
		v.Require(last.String())
	}
}

// delivered reports whether a finished segment is delivered and its marker written, as far as that is known.
func (s *judgedTopic) delivered(i int) bool {
	p, c := s.pass, s.feed
	switch {
	case p.v.state != nil:
		return p.over[i].segment.Compare(p.v.state.Frontier.Completed) <= 0
	case !p.v.Kafka.Transactional || len(c.cutAt) > 0 || len(s.seeks) > 0: // the count of records proves nothing
		return false
	}
	for ; i < len(c.ends); i++ { // a segment without an event proves nothing
		if i == 0 && c.ends[i] > 0 || i > 0 && c.ends[i] > c.ends[i-1] {
			return c.noted >= c.ends[i]
		}
	}
	return false
}

// look passes the validators what the state says before and after the topic was read.
func (s *judgedTopic) look(ctx context.Context) error {
	if s.v.state == nil {
		return nil
	}
	again, err := s.v.cluster.state(ctx, s.v.state.topic) // the bridge delivers meanwhile
	if err != nil {
		return err
	}
	if again == nil || again.Frontier == nil {
		again = s.v.state.State
	}
	if s.feed != nil && again.Frontier.Epoch != s.v.state.Frontier.Epoch { // it was moved meanwhile
		s.feed.Returns = false
	}
	s.bounds(again.Frontier)
	s.knowScans(again)
	return nil
}

// bounds passes the validator of markers what the state says. The last marker is at or above the time that was resolved
// before the topic was read, and at or below the time that is resolved now. There can be markers of seeks and of lost
// history, or not.
func (s *judgedTopic) bounds(now *offsets.Frontier) {
	before, v := s.v.state.Frontier, s.checks.resolved
	if v == nil {
		return
	}
	v.Seeks, v.Gaps = now.Epoch-now.Replaced, int64(now.Gaps)
	if now.Born != 0 || now.Gaps > 0 && v.Repeats { // a reset forgets what was lost, and so may a repair
		v.Gaps = math.MaxInt64
	}
	if s.v.Until != (envelope.Timestamp{}) {
		return
	}
	least := before.Resolved
	if slices.Contains(before.Found(), s.name) {
		least = before.Repeat.Resolved
	}
	if s.fresh || before.Gap != nil && len(s.markers) == 0 || before.Owed { // its marker comes next
		least = ""
	}
	v.Last(least, now.Resolved)
}
