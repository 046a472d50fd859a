package judge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/source"
	"blobfeed/verify"
)

// Some settings may change while records exist. Then all older records differ from what the settings make now. If
// records differ from the feed, explain looks for the change of settings that explains them.

// minOdd is the number of differing records from which on a setting is suspected: a change of one affects more.
const minOdd = 3

// explain judges a topic again, with older records and markers by former settings, if these explain the differences.
func (v *verification) explain(ctx context.Context, s *trial, before *Report) (*Report, error) {
	was, err := v.formerSettings(ctx, s)
	if err != nil {
		return nil, err
	}
	again := &feedPass{v: v}
	if was.encoder != nil {
		again.older = was.again
	}
	bad := s.bad()
	if s.checks != nil && s.checks.resolved != nil && len(s.checks.resolved.Unexpected()) > 0 {
		again.slack = s.pass.formerSlack(s.checks.resolved.Unexpected())
	}
	if again.older == nil && again.slack == nil {
		return before, nil
	}
	if err := v.walk(ctx, again, []*subject{s.subject}, s.state); err != nil {
		return nil, err
	}
	found := try(s.subject, s.state, again)
	r, err := v.judge(ctx, found)
	if err != nil || found.bad() >= bad {
		return before, err
	}
	if again.slack != nil {
		r.note("older markers were written with BRIDGE_RESOLVED_SLACK=%s, and are compared with that setting",
			*again.slack)
	}
	if n, until := found.feed.Before(); n > 0 {
		var places []string
		for _, p := range slices.Sorted(maps.Keys(until)) {
			places = append(places, fmt.Sprintf("offset %d of partition %d", until[p], p))
		}
		r.note("compared with %s, as they were written: %s up to %s",
			was.names, plain.Count(n, "record"), strings.Join(places, ", "))
	}
	return r, nil
}

// formerSettings returns the settings that explain most of the differing records.
func (v *verification) formerSettings(ctx context.Context, s *trial) (*attempt, error) {
	odd, best := s.feed.odd, &attempt{}
	if len(odd) < minOdd {
		return best, nil
	}
	for _, two := range []bool{false, true} {
		if len(best.explains) == len(odd) || two && len(odd) < maxOdd { // a change of two affects many records
			continue
		}
		look := &search{odd, append(v.attempts(ctx, s.name, odd, two), best)}
		if err := v.walk(ctx, &feedPass{v: v, older: look.compare}, []*subject{s.subject}, s.state); err != nil {
			return nil, err
		}
		best = slices.MaxFunc(look.tries, func(a, b *attempt) int { return len(a.explains) - len(b.explains) })
	}
	if len(best.explains) == 0 {
		return &attempt{}, nil
	}
	return best, nil
}

// bad counts the failures that settings may explain.
func (s *trial) bad() int64 {
	n := s.feed.Bad()
	if s.checks != nil && s.checks.resolved != nil {
		n += int64(len(s.checks.resolved.Unexpected()))
	}
	return n
}

// search looks for the settings that explain differing records.
type search struct {
	odd   []verify.Record
	tries []*attempt
}

// compare finds the attempts that explain differing records of an event.
func (s *search) compare(
	c *comparison, ev *source.Event, pos source.Position, key []byte,
) (*envelope.Record, error) {
	for i := range s.odd {
		odd := &s.odd[i]
		if string(odd.Key) != string(key) {
			continue
		}
		for _, try := range s.tries {
			if try.encoder == nil || try.explains[i] {
				continue
			}
			var rec envelope.Record
			_, emit, err := try.encoder.Append(nil, &rec, ev, pos)
			if err != nil || !emit {
				return nil, err
			}
			whole, second := recordOf(&rec, c.avro), tombstoneOf(&rec, c.avro)
			if c.Same(&whole, odd) || rec.Tombstone && c.Same(&second, odd) {
				try.explains[i] = true
			}
		}
	}
	return nil, nil
}

// again returns the record of an event by the settings of the attempt.
func (a *attempt) again(
	_ *comparison, ev *source.Event, pos source.Position, _ []byte,
) (was *envelope.Record, err error) {
	was = new(envelope.Record)
	a.buf, _, err = a.encoder.Append(a.buf[:0], was, ev, pos)
	return was, err
}
