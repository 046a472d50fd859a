package judge

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/verify"
)

// inquiry finds where in the feed missing events are, and in which fields records differ from the expected ones. It
// scans the feed again: a first scan that kept that of each event would need several times the memory.
type inquiry struct {
	asked map[string][]question // by key
	seen  map[string]int        // how many expected records of these keys came so far
}

// question is a failure, and the record of the topic, if the failure is at one.
type question struct {
	failure *failureReport
	record  *verify.Record
}

// inquire adds to the failures of the comparison with the feed what a second scan finds.
func (v *verification) inquire(ctx context.Context, t *run, r *Report) error {
	q := &inquiry{asked: map[string][]question{}, seen: map[string]int{}}
	i := slices.IndexFunc(r.Checks, func(c checkReport) bool { return c.Name == "replay" })
	if i < 0 {
		return nil
	}
	differ := false
	for j := range r.Checks[i].Failures {
		f := &r.Checks[i].Failures[j]
		if f.expected == 0 {
			continue
		}
		x := question{failure: f}
		if f.Offset != nil {
			at := slices.IndexFunc(t.feed.wrong, func(r verify.Record) bool {
				return r.Partition == *f.Partition && r.Offset == *f.Offset
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
	return v.walk(ctx, &feedScan{v: v, inquiry: q}, []*subject{t.subject}, t.state)
}

// event answers the questions about the records of an event.
func (q *inquiry) event(c *comparison, pos source.Position, rec *envelope.Record) {
	asked := q.asked[string(rec.Key)]
	if asked == nil {
		return
	}
	for _, want := range recordsOf(rec, c.avro) {
		q.seen[string(rec.Key)]++
		for _, x := range asked {
			switch {
			case x.failure.expected != q.seen[string(rec.Key)]:
			case x.record == nil:
				x.failure.Problem += fmt.Sprintf("; in the feed it is at %s", pos)
			default:
				x.failure.Problem += ": " + strings.Join(c.Differences(x.record, &want), ", ")
			}
		}
	}
}
