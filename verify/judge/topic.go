package judge

import (
	"cmp"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/verify"
)

// judgedTopic is a topic that is to be judged.
type judgedTopic struct {
	*topic
	v       *verification
	heads   map[int32]*verify.Record // the first record, or marker, of each partition that has one
	growth  growth
	encoder *envelope.Encoder // with --feed or --account
	pass    *feedScan         // nil: without --feed
	feed    *comparison       // of the pass
	checks  *checks           // while it is read
	fresh   bool              // new in the current segment, so that no marker is due yet
}

// openJudged opens the topics.
func (v *verification) openJudged(ctx context.Context) (all []*judgedTopic, err error) {
	counts, fresh := v.state.topics()
	names := []string{v.Topic}
	if v.Topic == "" {
		if names = slices.Sorted(maps.Keys(counts)); len(names) == 0 {
			return nil, plain.SettingsErrorf("BRIDGE_TOPIC=%s names many topics, and %s.offsets has none: name one "+
				"with --topic", v.Records.Frozen[offsets.FrozenTopic], v.Name)
		}
	}
	for _, name := range names {
		if v.since != nil && fresh[name] {
			continue // the round that ends with its first marker compares it
		}
		s := &judgedTopic{v: v, fresh: fresh[name]}
		var markers *topic
		if v.Records.Markers == envelope.MarkersTopic { // before the records that they stand for
			if markers, err = v.open(ctx, plain.MarkerTopic(name)); err != nil {
				return nil, err
			}
		}
		if s.topic, err = v.open(ctx, name); err != nil {
			return nil, err
		}
		all = append(all, s)
		if v.since != nil && s.compacted {
			return nil, plain.SettingsErrorf("--follow: topic %s is compacted, which may remove records before they "+
				"are compared: use --feed", name)
		}
		if v.since != nil {
			if err := v.since.resume(s); err != nil {
				return nil, err
			}
		}
		if markers != nil {
			if err := s.putMarkers(ctx, markers); err != nil {
				return nil, err
			}
		}
		if err := s.learn(ctx, int(counts[name]), v.Until, v.Records.Partition); err != nil {
			return nil, fmt.Errorf("reading the start of topic %s: %w", name, err)
		}
		if v.state == nil && s.hasLetters() {
			return nil, plain.SettingsErrorf("topic %s holds dead letters of a bridge: they are verified with the "+
				"topic of its records", name)
		}
		if v.ReadFeed || v.ReadAccount {
			if s.encoder, err = v.Records.Encoder(ctx, name); err != nil {
				return nil, v.unread(err, name)
			}
		}
	}
	return all, nil
}

// hasLetters reports whether each partition begins with a dead letter.
func (s *judgedTopic) hasLetters() bool {
	for _, r := range s.heads {
		if r.Header("content") == nil || r.Header("part") == nil {
			return false
		}
	}
	return len(s.heads) > 0
}

func (v *verification) open(ctx context.Context, name string) (*topic, error) {
	t, err := v.cluster.open(ctx, name)
	if err == nil {
		t.avro = v.avro
		if v.writer != nil {
			t.portion = &portion{of: v.writer}
			t.portion.reset()
		}
	}
	return t, err
}

// unread explains a missing schema, which a reader does not register.
func (v *verification) unread(err error, topic string) error {
	refused, is := errors.AsType[*kafka.SchemaError](err)
	if !is || !refused.Missing {
		return err
	}
	return plain.SettingsErrorf("subject %s in the registry does not have the schema of records with these settings "+
		"(%s): use the settings, the registry and the version of bridge that topic %s was written with",
		refused.Subject, refused.Reason, topic)
}

// cluster has the topics. Tests implement it with records that they have changed after the bridge wrote them.
type cluster interface {
	// open returns a topic up to its end, or errNoTopic.
	open(ctx context.Context, name string) (*topic, error)
	// state returns what is committed to a state topic, or nil if there is none.
	state(ctx context.Context, topic string) (*offsets.State, error)
	// claims returns what the states of bridges with other names say, as far as they can be read.
	claims(ctx context.Context, own string) ([]offsets.Claim, error)
	// ends returns the offsets after the last records of a topic, committed or not.
	ends(ctx context.Context, topic string) (map[int32]int64, error)
	// read shows the committed records of a topic between offsets, by partition, until show returns false for one of
	// the partition. It waits for transactions that are open before the ends.
	read(ctx context.Context, topic string, from, to map[int32]int64, show func(*kgo.Record) (more bool)) error
}

// errNoTopic says that a topic does not exist.
var errNoTopic = errors.New("it does not exist: check BRIDGE_TOPIC, --topic and BRIDGE_KAFKA_BROKERS; if the topic " +
	"was deleted, bridge check says how to continue")

// topic is a topic up to the end that it had when it was opened.
type topic struct {
	name      string
	in        cluster
	from, to  map[int32]int64
	resumed   *roundEnd // where a former round of --follow ended, which from is then; nil: this is the first round
	compacted bool
	markers   map[int32]envelope.Timestamp // the last that was read, by partition
	seeks     []string                     // that the markers of partition 0 name, as far as it was read
	soughtAt  []envelope.Timestamp         // the times of these markers

	avro        *verify.Avro
	portion     *portion            // of the judged bridge; nil: no other bridge writes to the topic
	markerTopic *topic              // of its markers, if they have a topic of their own
	aside       *verify.MarkerTopic // the markers in markerTopic
}

// deleted reports whether retention has deleted the start of a partition.
func (t *topic) deleted(p int32) bool { return t.from[p] > 0 && t.resumed == nil }

// markersOf returns the topic that has the markers.
func (t *topic) markersOf() *topic { return cmp.Or(t.markerTopic, t) }

func (t *topic) empty() bool {
	for p, end := range t.to {
		if t.from[p] < end {
			return false
		}
	}
	return true
}

// putMarkers reads the markers from a topic of their own. That topic was opened before t, so t has the records that the
// markers stand for.
func (t *topic) putMarkers(ctx context.Context, markers *topic) error {
	t.markerTopic, t.aside = markers, verify.NewMarkerTopic(t.name)
	add := func(r verify.Record) bool {
		if at, ok := markerTime(&r); !ok || t.resumed == nil || at.Compare(t.resumed.marker) >= 0 {
			t.aside.Add(r)
		}
		return true
	}
	if err := markers.readAll(ctx, add); err != nil {
		return err
	}
	return markers.catchUp(ctx, add)
}

// readAll shows note the records of each partition, until note returns false or the partition ends. Markers that have a
// topic of their own are shown at the offsets that they name.
func (t *topic) readAll(ctx context.Context, note func(verify.Record) (more bool)) error {
	t.seeks, t.soughtAt = nil, nil
	if t.portion != nil {
		t.portion.reset()
	}
	if t.aside == nil {
		return t.read(ctx, t.from, t.to, note)
	}
	t.aside.Rewind()
	marker := func(r verify.Record) bool { t.heed(&r); return note(r) }
	full := map[int32]bool{} // partitions for which note has returned false
	err := t.read(ctx, t.from, t.to, func(r verify.Record) bool {
		more := t.aside.Show(r.Partition, r.Offset, marker) && note(r)
		full[r.Partition] = !more
		return more
	})
	for p := range t.to {
		if err == nil && !full[p] {
			t.aside.Show(p, math.MaxInt64, marker)
		}
	}
	return err
}

func (t *topic) read(ctx context.Context, from, to map[int32]int64, note func(verify.Record) (more bool)) error {
	return t.in.read(ctx, t.name, from, to, func(r *kgo.Record) bool { return t.show(r, note) })
}

// logAppendTime is the timestamp type of records whose timestamp is the broker's clock, not the event's time.
const logAppendTime = 1

func (t *topic) show(r *kgo.Record, note func(verify.Record) (more bool)) bool {
	v := verify.Record{
		Topic: t.name, Partition: r.Partition, Offset: r.Offset, Key: r.Key, Value: r.Value, Avro: t.avro,
	}
	if r.Attrs.TimestampType() != logAppendTime {
		v.Millis = r.Timestamp.UnixMilli()
	}
	v.Headers = make([]verify.Header, len(r.Headers))
	for i, h := range r.Headers {
		v.Headers[i] = verify.Header(h)
	}
	if t.portion != nil && !t.portion.takes(&v) {
		return true
	}
	t.heed(&v)
	return note(v)
}

// heed keeps the time of a marker, and the seek that it names.
func (t *topic) heed(r *verify.Record) {
	at, ok := markerTime(r)
	if ok {
		t.markers[r.Partition] = at
	}
	if seek := r.Header("seek"); seek != nil && r.Key == nil && r.Partition == 0 {
		t.seeks, t.soughtAt = append(t.seeks, string(seek)), append(t.soughtAt, at)
	}
}

// markerTime returns the time of a marker, in any envelope.
func markerTime(r *verify.Record) (envelope.Timestamp, bool) {
	if r.Key != nil {
		return envelope.Timestamp{}, false
	}
	at, err := envelope.ParseTimestamp(r.MarkerTime())
	return at, err == nil
}

// catchUp reads further on partitions whose last marker is older than that of another partition. A marker goes to all
// partitions in one transaction, but their ends were not looked up at one moment. The records between were committed
// before that marker, so the feed has their events.
func (t *topic) catchUp(ctx context.Context, note func(verify.Record) (more bool)) error {
	if t.aside != nil {
		return nil // putMarkers did it
	}
	var newest envelope.Timestamp
	for _, at := range t.markers {
		if at.Compare(newest) > 0 {
			newest = at
		}
	}
	// Once is enough: a marker that one partition has shown is committed on all.
	ends, err := t.in.ends(ctx, t.name)
	if err != nil {
		return err
	}
	maps.DeleteFunc(ends, func(p int32, _ int64) bool {
		_, opened := t.to[p] // others were added since
		return !opened || t.markers[p].Compare(newest) >= 0
	})
	return t.read(ctx, maps.Clone(t.to), ends, func(r verify.Record) bool {
		t.to[r.Partition] = r.Offset + 1
		return note(r) && t.markers[r.Partition].Compare(newest) < 0
	})
}

// span is the part of the feed that a topic has, by its own records: the first and the newest event, zero if they have
// no time, the newest marker, and the marker that all partitions have.
type span struct {
	first, newest, last, resolved envelope.Timestamp

	again map[int32]*repeated // by partition, if it has a seek
}

// repeated is how far the last seek has come again: up to a segment, and then as many as there are markers behind it.
type repeated struct {
	after   source.Segment
	markers int
}

// heed looks at a record of the partition.
func (a *repeated) heed(r *verify.Record) {
	pos, err := source.ParsePosition(string(r.Header("position")))
	switch before := source.Before(pos.Segment); {
	case r.Key == nil:
		a.markers++
	case err == nil && before.Compare(a.after) > 0: // all up to it came before
		*a = repeated{after: before}
	}
}

// span reads the span of the topic, and the id of the schema that its Avro keys begin with.
func (t *topic) span(ctx context.Context) (s span, keys int, err error) {
	s.again = map[int32]*repeated{}
	err = t.readAll(ctx, func(r verify.Record) (more bool) {
		_, place, sought := strings.Cut(string(r.Header("seek")), " ")
		if target, err := history.ParseTarget(place); sought && r.Key == nil && err == nil {
			after, _ := target.Begin()
			s.again[r.Partition] = &repeated{after: after}
			return true
		}
		if r.Scanned() {
			return true
		}
		if again := s.again[r.Partition]; again != nil {
			again.heed(&r)
		}
		if r.Key == nil {
			return true
		}
		if len(r.Key) >= 5 && keys == 0 {
			keys = int(binary.BigEndian.Uint32(r.Key[1:]))
		}
		from, err := envelope.ParseTimestamp(string(r.Updated()))
		to := from
		if err != nil { // the record may be of any moment in its millisecond
			from, to = envelope.Timestamp{Wall: (r.Millis + 1) * 1e6}, envelope.Timestamp{Wall: r.Millis * 1e6}
		}
		known := err == nil || r.Millis > 0
		if known && (s.first == (envelope.Timestamp{}) || from.Compare(s.first) < 0) {
			s.first = from
		}
		if to.Compare(s.newest) > 0 {
			s.newest = to
		}
		return true
	})
	for _, at := range t.markers {
		if at.Compare(s.last) > 0 {
			s.last = at
		}
		if s.resolved == (envelope.Timestamp{}) || at.Compare(s.resolved) < 0 {
			s.resolved = at
		}
	}
	if len(t.markers) < len(t.to) {
		s.resolved = envelope.Timestamp{}
	}
	return s, keys, err
}

// cuts returns, for partitions whose start is deleted, the segment of their first event. Events up to that segment
// may be deleted, too.
func (t *topic) cuts(ctx context.Context) (map[int32]source.Segment, error) {
	cuts, from, to := map[int32]source.Segment{}, map[int32]int64{}, map[int32]int64{}
	for p, at := range t.from {
		if t.deleted(p) {
			cuts[p], from[p], to[p] = endless, at, t.to[p]
		}
	}
	var unknown error
	err := t.read(ctx, from, to, func(r verify.Record) (more bool) {
		if r.Key == nil || r.Scanned() {
			return true
		}
		pos, err := source.ParsePosition(string(r.Header("position")))
		cuts[r.Partition] = pos.Segment
		if err != nil {
			unknown = fmt.Errorf("partition %d of %s starts at offset %d, "+
				"and its first record has no position in the feed: %w",
				r.Partition, t.name, t.from[r.Partition], err)
		}
		return false
	})
	return cuts, errors.Join(err, unknown)
}

// endless is after every segment.
var endless = source.SegmentAt(time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC))

const (
	brokerPatience = 30 * time.Second // for an answer of the brokers
	// recordPatience is for the next records, which an open transaction may hide. It is longer than most
	// BRIDGE_TXN_TIMEOUTs.
	recordPatience = time.Minute
)

// brokers are those of Kafka, by the options of a client.
type brokers []kgo.Opt

// open looks up the start and the end of a topic. The end is after everything that is written by now, committed or not:
// a transaction that is visible on one partition may not be visible on the next yet.
func (b brokers) open(ctx context.Context, name string) (*topic, error) {
	t := &topic{name: name, in: b, markers: map[int32]envelope.Timestamp{}}
	err := b.ask(ctx, func(ctx context.Context, admin *kadm.Client) error {
		listed, err := admin.ListTopics(ctx, name)
		if err != nil {
			return err
		}
		if errors.Is(listed[name].Err, kerr.UnknownTopicOrPartition) {
			return errNoTopic
		}
		if t.to, err = offsetsBy(ctx, admin.ListEndOffsets, name); err != nil {
			return err
		}
		if t.from, err = offsetsBy(ctx, admin.ListStartOffsets, name); err != nil {
			return err
		}
		settings, err := topics.Read(ctx, admin, name)
		t.compacted = settings[name].Compacted()
		return err
	})
	if err != nil {
		return nil, fmt.Errorf("opening topic %s: %w", name, err)
	}
	return t, nil
}

// state reads with the code that writes the state, and so knows the versions before this one.
func (b brokers) state(ctx context.Context, topic string) (s *offsets.State, err error) {
	err = b.ask(ctx, func(ctx context.Context, admin *kadm.Client) error {
		s, err = (&status.Reader{Topic: topic, Admin: admin, Client: b}).State(ctx)
		return err
	})
	if errors.As(err, new(*status.NeverRanError)) {
		return nil, nil
	}
	return s, err
}

func (b brokers) claims(ctx context.Context, own string) (claims []offsets.Claim, err error) {
	err = b.ask(ctx, func(ctx context.Context, admin *kadm.Client) error {
		claims, _, err = offsets.Claims(ctx, admin, own, b...)
		return err
	})
	return claims, err
}

// ask calls f with a client and a deadline.
func (b brokers) ask(ctx context.Context, f func(context.Context, *kadm.Client) error) error {
	cl, err := kgo.NewClient(b...)
	if err != nil {
		return err
	}
	defer cl.Close()
	asking, cancel := context.WithTimeoutCause(ctx, brokerPatience, status.ErrSilent)
	defer cancel()
	if err = f(asking, kadm.NewClient(cl)); err != nil && asking.Err() != nil {
		return context.Cause(asking)
	}
	return err
}

func (b brokers) ends(ctx context.Context, topic string) (ends map[int32]int64, err error) {
	err = b.ask(ctx, func(ctx context.Context, admin *kadm.Client) error {
		ends, err = offsetsBy(ctx, admin.ListEndOffsets, topic)
		return err
	})
	return ends, err
}

// offsetsBy lists offsets of a topic by a function of kadm.
func offsetsBy(
	ctx context.Context, list func(context.Context, ...string) (kadm.ListedOffsets, error), topic string,
) (map[int32]int64, error) {
	listed, err := topics.Offsets(ctx, list, topic)
	if err != nil {
		return nil, fmt.Errorf("listing offsets: %w", err)
	}
	at := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) { at[o.Partition] = o.Offset })
	return at, nil
}

func (b brokers) read(
	ctx context.Context, topic string, from, to map[int32]int64, show func(*kgo.Record) (more bool),
) error {
	reading := topics.Reading{Client: b, Topic: topic, From: from, To: to, Patience: recordPatience}
	err := reading.Each(ctx, show)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return plain.WithRemedy(err, "verify needs Read on this topic, which run does not: see docs/security.md")
	}
	if silent, is := errors.AsType[*topics.SilentError](err); is && silent.Why == nil {
		return fmt.Errorf("%w; verify again when BRIDGE_TXN_TIMEOUT is over", err)
	}
	return err
}
