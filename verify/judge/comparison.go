package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/verify"
)

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
	first   source.Segment           // with an event for the topic
	ends    []int64                  // for each finished segment, how many records there are up to its end

	records int64 // of the feed, which are in the topic if they are delivered
	noted   int64 // of the topic
	given   int64 // events that the settings select
	before  int64 // of them those before the start of their partition
	skipped int64 // of them those that a seek may have skipped
	scanned int64 // of them those that an initial scan stands for
	older   int64 // records of segments or chunks that the feed has no more

	wrong []verify.Record // the first records that are not as expected
}

// event adds the record of an event.
func (c *comparison) event(seg source.Segment, rec *envelope.Record, required bool) {
	c.given++
	if c.first == (source.Segment{}) {
		c.first = seg
	}
	required = required && (c.pass.v.state != nil || c.upTo != (envelope.Timestamp{})) &&
		(c.upTo == (envelope.Timestamp{}) || rec.Updated.Compare(c.upTo) <= 0)
	if c.pass.sought.skips(seg, rec.Updated) {
		required = false
		c.skipped++
	}
	scanned := seg.Time().Before(c.fedFrom)
	if scanned {
		required = false
		c.scanned++
	}
	for _, n := range c.counts {
		if begin, cut := c.cutAt[c.pass.v.Records.Partition(rec.Key, n)]; cut && seg.Compare(begin) <= 0 {
			required = false
			c.before++
			break
		}
	}
	for _, r := range recordsOf(rec, c.pass.v.avro) {
		c.Expect(r, required)
		if !scanned {
			c.records++
		}
	}
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

// question is a failure, and the record of the topic, if the failure is at one.
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
		if f.Topic != "" {
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
