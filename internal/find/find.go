// Package find answers where a change is: which events of the feed are of a blob, what became of each, and where in
// Kafka its record is.
package find

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/status"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/source/ocf"
)

// Query says what to find: the events of a path, container/blob, or the one with an id.
type Query struct {
	Path, ID string
	From     history.Target     // where in the feed to begin
	To       envelope.Timestamp // the last; zero: the end of the feed
}

// Fates of an event.
const (
	Delivered  = "delivered"     // there is a record
	LeftOut    = "left_out"      // by the settings
	DeadLetter = "dead_letter"   // it is in the dead-letter topic
	Waiting    = "not_delivered" // the bridge is not there yet
	Skipped    = "skipped"       // a seek has moved the bridge past it
	Missing    = "missing"       // the bridge was there, and there is no record
	Unknown    = "unknown"       // without headers, records do not say which event they are of
)

// Found is an event, and what became of it. Its JSON is the answer of the verb.
type Found struct {
	Position  string    `json:"position"`
	Time      time.Time `json:"event_time"`
	Type      string    `json:"event_type"`
	ID        string    `json:"event_id"`
	Path      string    `json:"path"`
	Fate      string    `json:"fate"`
	Why       string    `json:"why,omitempty"`
	Record    *Place    `json:"record,omitempty"`
	Again     []*Place  `json:"again,omitempty"`      // later records of it: a seek repeats events
	CoveredBy *Place    `json:"covered_by,omitempty"` // the first marker that promises that the event was before it
	Key       string    `json:"key,omitempty"`
	Value     []byte    `json:"-"`

	topic   string
	segment source.Segment
}

// Place is a record in Kafka.
type Place struct {
	Topic     string `json:"topic"`
	Partition int32  `json:"partition"`
	Offset    int64  `json:"offset"`
	Resolved  string `json:"resolved,omitempty"` // of a marker
}

// Finder finds events in the feed and the topics of a bridge.
type Finder struct {
	Bridge *bridge.Options
	State  *offsets.State // nil: the bridge has never started
	Bare   bool           // records have no headers
	// Letters is the topic of dead letters, whatever BRIDGE_ON_ERROR says.
	Letters string
	Values  bool // keep the values of records

	// Damage is the first that Find has met, which may hide events; nil: there is none.
	Damage *source.DamageError
}

// atOnce is how many events are looked for in one read of a topic. They take some 10 MB, and their values as much again
// or more.
const atOnce = 20_000

// Find calls show for each event of the query, in the order of the feed, shard by shard. It continues behind damage.
// Events share a read of their topic: each may be anywhere in it.
func (f *Finder) Find(ctx context.Context, q Query, show func(*Found) error) error {
	var all []*Found
	answer := func() error {
		some := all
		all = nil
		if err := f.places(ctx, some); err != nil {
			return err
		}
		for _, found := range some {
			if err := show(found); err != nil {
				return err
			}
		}
		return nil
	}
	err := f.events(ctx, q, func(found *Found) error {
		if all = append(all, found); len(all) < atOnce {
			return nil
		}
		return answer()
	})
	return cmp.Or(err, answer()) // also what is before an error
}

// events calls show for each event of the query, with its fate if that does not depend on a topic.
func (f *Finder) events(ctx context.Context, q Query, show func(*Found) error) error {
	after, from := q.From.Begin()
	begin := q.From.Time()
	if from == (envelope.Timestamp{}) && after != (source.Segment{}) {
		begin = time.Time{} // a segment: all that is in it
	}
	for seg, err := range f.Bridge.Feed.Source.Segments(ctx, after) {
		if err != nil {
			return err
		}
		if q.To != (envelope.Timestamp{}) && seg.Time().Add(-outside).UnixNano() > q.To.Wall {
			return nil
		}
		m, err := f.Bridge.Feed.Source.Manifest(ctx, seg)
		if err != nil {
			return err
		}
		for _, shard := range m.Shards {
			if err := f.shard(ctx, m, shard, q, begin, show); err != nil {
				return err
			}
		}
	}
	return nil
}

// outside is how far an event can be outside its segment.
const outside = 15 * time.Minute

func (f *Finder) shard(
	ctx context.Context, m source.Manifest, shard int, q Query, begin time.Time, show func(*Found) error,
) error {
	r := f.Bridge.Feed.Source.Shard(m, shard, source.ShardPosition{})
	if err := r.Poll(ctx, m.Finalized); err != nil {
		return err
	}
	for {
		var b source.Batch
		err := r.Next(ctx, &b)
		if errors.Is(err, io.EOF) {
			return nil
		}
		next := b.Next
		if d, is := errors.AsType[*source.DamageError](err); is {
			loss, known, failed := r.Loss(ctx, d)
			if failed != nil || !known {
				return cmp.Or(failed, err)
			}
			f.Damage = cmp.Or(f.Damage, d)
			r.Skip(loss)
			next = r.Position()
		} else if err != nil {
			return err
		}
		pos := source.Position{Segment: m.Segment, Shard: shard, Chunk: b.Chunk, Offset: b.Offset}
		for i := range b.Events {
			ev := &b.Events[i]
			pos.Index = i
			if path := envelope.PathOf(ev.Subject); q.ID != "" && ev.ID != q.ID || q.Path != "" && path != q.Path {
				continue
			}
			at, err := time.Parse(time.RFC3339Nano, ev.EventTime)
			if err == nil && (at.Before(begin) || q.To != (envelope.Timestamp{}) && at.UnixNano() > q.To.Wall) {
				continue
			}
			found := &Found{Position: pos.String(), Time: at.UTC(), Type: ev.EventType, ID: ev.ID,
				Path: envelope.PathOf(ev.Subject), segment: m.Segment}
			f.judge(found, ev, shard, next)
			if err := show(found); err != nil {
				return err
			}
		}
	}
}

// judge finds out what became of an event, or in which topic its record is to be looked for.
func (f *Finder) judge(found *Found, ev *ocf.Event, shard int, next source.ShardPosition) {
	if found.Why = f.leftOut(ev); found.Why != "" {
		found.Fate = LeftOut
		return
	}
	switch seg := found.segment; {
	case !status.Covers(f.State, seg, shard, next) && !f.delivered(found):
		found.Fate, found.Why = Waiting, "the bridge has not committed this part of segment "+seg.String()+" yet"
	case f.Bare:
		found.Fate, found.Why = Unknown, "records have no headers (BRIDGE_HEADERS=none), which would name their events"
	}
	if f.Bare {
		return
	}
	var err error
	if found.topic, err = f.Bridge.Topics.Names.Of(ev); err != nil {
		found.Why = cmp.Or(found.Why, err.Error()) // a dead letter, or nothing
	}
}

// places finds the records of those events whose fate is not known yet. Behind a reset, or without its state, the
// bridge does not know what it has delivered.
func (f *Finder) places(ctx context.Context, all []*Found) error {
	of := map[string][]*Found{} // by topic; "": there is none
	for _, e := range all {
		if e.Fate == "" || e.Fate == Waiting && !f.Bare {
			of[e.topic] = append(of[e.topic], e)
		}
	}
	var lost []*Found
	for _, topic := range slices.Sorted(maps.Keys(of)) {
		if topic != "" {
			if err := f.search(ctx, topic, of[topic]); err != nil {
				return err
			}
		}
		lost = append(lost, slices.DeleteFunc(of[topic], func(e *Found) bool { return e.Fate != "" })...)
	}
	if len(lost) == 0 {
		return nil
	}
	// With another BRIDGE_ON_ERROR the topic may be there, too. Permission to read it may be missing then.
	err := f.search(ctx, f.Letters, lost)
	if err != nil && (f.Bridge.Topics.DeadLetter != "" || !errors.Is(err, kerr.TopicAuthorizationFailed)) {
		return err
	}
	compacted := map[string]bool{}
	for _, e := range lost {
		if e.Record != nil {
			continue
		}
		if _, known := compacted[e.topic]; !known && e.Why == "" {
			compacted[e.topic] = f.compacted(ctx, e.topic)
		}
		switch why := f.skipped(e); {
		case why != "":
			e.Fate, e.Why = Skipped, why
		case e.Why != "":
			e.Fate = Missing
		case compacted[e.topic]:
			e.Fate, e.Why = Unknown, "topic "+e.topic+" is compacted, so a later record of the key may have replaced "+
				"that of the event; bridge verify --feed judges the topic"
		default:
			e.Fate, e.Why = Missing, "the bridge has passed the event, and "+e.topic+" has no record of it: retention "+
				"may have deleted it, or a filter of that time left it out; bridge verify --feed judges the topic"
		}
	}
	return nil
}

// compacted reports whether a topic keeps the newest record of each key only; false if the brokers do not say.
func (f *Finder) compacted(ctx context.Context, topic string) bool {
	cl, err := kgo.NewClient(f.Bridge.Kafka.Client...)
	if err != nil {
		return false
	}
	defer cl.Close()
	settings, err := topics.Read(ctx, kadm.NewClient(cl), topic)
	return err == nil && settings[topic].Compacted()
}

// delivered reports whether the state says that an event was delivered, perhaps before a seek that voids the cursors.
func (f *Finder) delivered(e *Found) bool {
	return f.State != nil && f.State.Frontier != nil &&
		slices.ContainsFunc(f.State.Frontier.Delivered(), func(s offsets.Stretch) bool {
			return s.Has(e.segment) && !early(e, s.From)
		})
}

// early reports whether an event is from before a time of the state.
func early(e *Found, from string) bool {
	at, err := envelope.ParseTimestamp(from)
	return err == nil && e.Time.UnixNano() < at.Wall
}

// skipped says why the bridge has moved past an event without delivering it; "" if it should have delivered it.
func (f *Finder) skipped(e *Found) string {
	if f.delivered(e) {
		return ""
	}
	front := f.State.Frontier
	for _, s := range front.Skipped() {
		if s.Has(e.segment) {
			next := cmp.Or(status.Place(s.From), source.SegmentAt(s.To.Time().Add(time.Minute)).String())
			return fmt.Sprintf("bridge seek has skipped the segments after %s and before %s", s.After, next)
		}
	}
	all := append(front.Delivered(), offsets.Stretch{After: front.Since, To: front.At(), From: front.Start})
	if first := all[0].After; e.segment.Compare(first) <= 0 {
		return fmt.Sprintf("no segment before %s is delivered (BRIDGE_START, BRIDGE_INITIAL_SCAN or bridge seek)",
			source.SegmentAt(first.Time().Add(time.Minute)))
	}
	for _, s := range all {
		if s.Has(e.segment) && early(e, s.From) {
			return "delivery began at " + status.Place(s.From) + " there (bridge seek or BRIDGE_START)"
		}
	}
	return ""
}

// leftOut says which setting leaves an event out, "" if none does.
func (f *Finder) leftOut(ev *ocf.Event) string {
	all := f.Bridge.Feed.Filter
	for _, only := range []struct {
		setting string
		filter  envelope.Filter
	}{
		{"BRIDGE_CONTAINERS", envelope.Filter{Containers: all.Containers, ExcludeContainers: all.ExcludeContainers}},
		{"BRIDGE_PREFIXES", envelope.Filter{Prefixes: all.Prefixes, ExcludePrefixes: all.ExcludePrefixes}},
		{"BRIDGE_SUFFIXES", envelope.Filter{Suffixes: all.Suffixes, ExcludeSuffixes: all.ExcludeSuffixes}},
		{"BRIDGE_EVENT_TYPES", envelope.Filter{EventTypes: all.EventTypes, ExcludeEventTypes: all.ExcludeEventTypes}},
		{"BRIDGE_BLOB_TYPES", envelope.Filter{BlobTypes: all.BlobTypes}},
		{"BRIDGE_END_TIME", envelope.Filter{To: f.Bridge.Feed.End}},
		{"BRIDGE_START", envelope.Filter{From: f.start()}},
	} {
		if match, err := only.filter.Match(ev); err == nil && !match {
			return only.setting + " leaves it out (what was delivered before it changed is not looked for)"
		}
	}
	if !f.Bridge.Records.Events.Emits(envelope.Classify(ev)) {
		return "it does not change the blob itself, and BRIDGE_EVENTS is not all"
	}
	return ""
}

// start is the time before which the bridge leaves events out.
func (f *Finder) start() (from envelope.Timestamp) {
	if f.State != nil && f.State.Frontier != nil && f.State.Frontier.Start != "" && f.State.Frontier.Epoch == 0 {
		from, _ = envelope.ParseTimestamp(f.State.Frontier.Start) // else nothing is left out by it
	}
	return from
}

// search looks for the records of events in a topic, and for the first marker behind each that covers it.
func (f *Finder) search(ctx context.Context, topic string, events []*Found) error {
	letters := topic == f.Letters
	of, from := map[string]*Found{}, events[0].Time
	for _, e := range events {
		of[e.Position] = e
		if letters { // a dead letter has the time when it was written
			from = time.Time{}
		} else if e.Time.Before(from) {
			from = e.Time
		}
	}
	reading, err := f.readingOf(ctx, topic, from)
	if err != nil {
		return fmt.Errorf("looking in topic %s: %w", topic, err)
	}
	if reading == nil {
		for _, e := range events {
			if !letters && e.Fate == "" {
				e.Why = "the bridge has passed the event, and topic " + topic + " does not exist: if it was deleted, " +
					"its records are gone"
			}
		}
		return nil
	}
	fate, marked := Delivered, f.Bridge.Records.Markers == envelope.MarkersInline
	if letters {
		fate, marked = DeadLetter, false
	}
	left := len(events)                            // those without a record
	unmarked := map[int32][]*Found{}               // by partition, those with a record, and without a marker behind it
	repeats := f.State == nil || f.State.Epoch > 0 // then the whole topic may have more records of an event
	return reading.Each(ctx, func(r *kgo.Record) (more bool) {
		place := func() *Place { return &Place{Topic: topic, Partition: r.Partition, Offset: r.Offset} }
		e := of[string(header(r, "position"))]
		switch resolved := string(header(r, "resolved")); {
		case e != nil && e.Record != nil:
			e.Again = append(e.Again, place())
		case e != nil:
			e.Fate, e.Why, e.Record, e.Key = fate, "", place(), string(r.Key)
			if left--; marked {
				unmarked[r.Partition] = append(unmarked[r.Partition], e)
			}
			if f.Values {
				e.Value = bytes.Clone(r.Value) // the record is a part of its batch
			}
		case resolved != "":
			at, err := envelope.ParseTimestamp(resolved)
			unmarked[r.Partition] = slices.DeleteFunc(unmarked[r.Partition], func(e *Found) bool {
				if err != nil || at.Wall < e.Time.UnixNano() {
					return false
				}
				e.CoveredBy = place()
				e.CoveredBy.Resolved = resolved
				return true
			})
		}
		return repeats || left > 0 || len(unmarked[r.Partition]) > 0
	})
}

func header(r *kgo.Record, name string) []byte {
	for _, h := range r.Headers {
		if h.Key == name {
			return h.Value
		}
	}
	return nil
}

// readingOf reads a topic from the first record at or after a time to the end of all records that are written now: a
// transaction that is open hides what others have committed behind it. It returns nil if the topic does not exist. A
// record has the time of its event, so it is not before the first of that time.
func (f *Finder) readingOf(ctx context.Context, topic string, from time.Time) (*topics.Reading, error) {
	cl, err := kgo.NewClient(f.Bridge.Kafka.Client...)
	if err != nil {
		return nil, err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	ends, err := topics.Offsets(ctx, admin.ListEndOffsets, topic)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	begins := admin.ListStartOffsets
	if !from.IsZero() {
		begins = func(ctx context.Context, names ...string) (kadm.ListedOffsets, error) {
			return admin.ListOffsetsAfterMilli(ctx, from.UnixMilli(), names...)
		}
	}
	starts, err := topics.Offsets(ctx, begins, topic)
	if err != nil {
		return nil, err
	}
	reading := &topics.Reading{Client: f.Bridge.Kafka.Client, Topic: topic,
		From: map[int32]int64{}, To: map[int32]int64{}}
	starts.Each(func(o kadm.ListedOffset) {
		if end, ok := ends.Lookup(topic, o.Partition); ok && o.Offset >= 0 {
			reading.From[o.Partition], reading.To[o.Partition] = o.Offset, end.Offset
		}
	})
	return reading, nil
}
