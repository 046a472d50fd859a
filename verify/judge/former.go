package judge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/verify"
)

// Some settings may change while records exist. Then all older records differ from what the settings make now. If
// records differ from the feed, explain looks for the change of settings that explains them.

const (
	// maxOdd limits the differing records that are kept for an explanation.
	maxOdd = 20
	// minOdd is the number of differing records from which on a setting is suspected: a change of one affects more.
	minOdd = 3
)

// revision sets some settings back.
type revision struct {
	names string // such as BRIDGE_DELETES=both
	set   func(*envelope.Options)
}

// revisions returns settings that can differ, one change each. Extra are headers that the bridge does not write.
func revisions(now envelope.Options, extra []envelope.Header) (all []revision) {
	flag := func(name string, on bool, field func(*envelope.Options) *bool) {
		names := "BRIDGE_OPTIONS with " + name
		if on {
			names = "BRIDGE_OPTIONS without " + name
		}
		all = append(all, revision{names, func(o *envelope.Options) { *field(o) = !on }})
	}
	flag("updated", now.Updated, func(o *envelope.Options) *bool { return &o.Updated })
	flag("diff", now.Diff, func(o *envelope.Options) *bool { return &o.Diff })
	flag("key_in_value", now.KeyInValue, func(o *envelope.Options) *bool { return &o.KeyInValue })
	flag("topic_in_value", now.TopicInValue, func(o *envelope.Options) *bool { return &o.TopicInValue })
	flag("mvcc_timestamp", now.MVCCTimestamp, func(o *envelope.Options) *bool { return &o.MVCCTimestamp })
	for _, p := range []envelope.Properties{0, envelope.Source, envelope.Schema, envelope.Source | envelope.Schema} {
		if p == now.Properties {
			continue
		}
		name := p.String()
		if p == 0 {
			name = "none"
		}
		all = append(all, revision{"BRIDGE_ENRICHED_PROPERTIES=" + name, func(o *envelope.Options) {
			o.Properties, o.Updated = p, p&envelope.Source != 0 // the default of updated
		}})
	}
	for b := range envelope.BeforeFull + 1 {
		if b != now.Before {
			all = append(all, revision{"BRIDGE_BEFORE=" + b.String(), func(o *envelope.Options) { o.Before = b }})
		}
	}
	for d := range envelope.DeletesEmpty + 1 { // one record of a deletion can't be matched with two
		if d != now.Deletes && now.Deletes != envelope.DeletesBoth && d != envelope.DeletesBoth {
			all = append(all, revision{"BRIDGE_DELETES=" + d.String(), func(o *envelope.Options) { o.Deletes = d }})
		}
	}
	for a := range envelope.Text + 1 {
		if a != now.AvroTimestamps {
			names := "BRIDGE_AVRO_TIMESTAMPS=" + a.String()
			all = append(all, revision{names, func(o *envelope.Options) { o.AvroTimestamps = a }})
		}
	}
	for h := range envelope.HeadersNone + 1 {
		if h != now.Headers {
			all = append(all, revision{"BRIDGE_HEADERS=" + h.String(), func(o *envelope.Options) { o.Headers = h }})
		}
	}
	var text []string
	for _, h := range extra {
		text = append(text, h.Key+"="+string(h.Value))
	}
	same := func(a, b envelope.Header) bool { return a.Key == b.Key && string(a.Value) == string(b.Value) }
	if !slices.EqualFunc(extra, now.ExtraHeaders, same) {
		names := "BRIDGE_EXTRA_HEADERS=" + strings.Join(text, ",")
		all = append(all, revision{names, func(o *envelope.Options) { o.ExtraHeaders = extra }})
	}
	return all
}

// attempt is a guess at the former settings.
type attempt struct {
	names    string
	encoder  *envelope.Encoder
	explains map[int]bool // which of the odd records
}

// attempts returns guesses with one change of settings, or with two.
func (v *verification) attempts(ctx context.Context, s *subject, odd []verify.Record, two bool) (all []*attempt) {
	try := func(cs ...revision) {
		o := v.Record
		var names []string
		for _, c := range cs {
			c.set(&o)
			names = append(names, c.names)
		}
		o.Topic, o.Account = s.name, v.Account
		if o.Validate() != nil {
			return
		}
		if e, err := v.EncoderOf(ctx, o); err == nil { // without a schema in the registry, no record was written
			all = append(all, &attempt{strings.Join(names, " and "), e, map[int]bool{}})
		}
	}
	single := revisions(v.Record, v.extra(odd))
	for i, c := range single {
		if !two {
			try(c)
			continue
		}
		for _, d := range single[i+1:] {
			try(c, d)
		}
	}
	return all
}

// extra returns the headers of the first odd record that the bridge does not write.
func (v *verification) extra(odd []verify.Record) (extra []envelope.Header) {
	own := v.Record
	own.ExtraHeaders, own.Headers = nil, envelope.HeadersCloudEvents
	r, _ := sample(own, "BlobCreated")
	for _, h := range odd[0].Headers {
		if !slices.ContainsFunc(r.Headers, func(o verify.Header) bool { return o.Key == h.Key }) && h.Key != "epoch" {
			extra = append(extra, envelope.Header(h))
		}
	}
	return extra
}

// explain judges a topic again, with older records and markers by former settings, if these explain the differences.
func (v *verification) explain(
	ctx context.Context, s *subject, pass *feedPass, state *progressState, before *Report,
) (*Report, error) {
	was, err := v.formerSettings(ctx, s, state)
	if err != nil {
		return nil, err
	}
	again := &feedPass{v: v, was: was.encoder}
	bad := s.bad()
	if s.checks != nil && s.checks.resolved != nil && len(s.checks.resolved.Unexpected()) > 0 {
		again.slack = pass.formerSlack(s.checks.resolved.Unexpected())
	}
	if again.was == nil && again.slack == nil {
		return before, nil
	}
	found := *s
	if err := v.walk(ctx, again, []*subject{&found}, state); err != nil {
		return nil, err
	}
	r, err := v.judge(ctx, &found, again, state)
	if err != nil || found.bad() >= bad {
		return before, err
	}
	if again.slack != nil {
		r.note("older markers were written with BRIDGE_RESOLVED_SLACK=%s, and are compared with that setting", *again.slack)
	}
	if n, until := found.feed.Before(); n > 0 {
		var places []string
		for _, p := range slices.Sorted(maps.Keys(until)) {
			places = append(places, fmt.Sprintf("offset %d of partition %d", until[p], p))
		}
		r.note("%d records were written with %s, up to %s, and are compared with that setting",
			n, was.names, strings.Join(places, ", "))
	}
	return r, nil
}

// bad counts the failures that settings may explain.
func (s *subject) bad() int64 {
	n := s.feed.Bad()
	if s.checks != nil && s.checks.resolved != nil {
		n += int64(len(s.checks.resolved.Unexpected()))
	}
	return n
}

// formerSettings returns the settings that explain most of the differing records.
func (v *verification) formerSettings(ctx context.Context, s *subject, state *progressState) (*attempt, error) {
	odd, best := s.feed.odd, &attempt{}
	if len(odd) < minOdd {
		return best, nil
	}
	for _, two := range []bool{false, true} {
		if len(best.explains) == len(odd) || two && len(odd) < maxOdd { // a change of two affects many records
			continue
		}
		look := &feedPass{v: v, odd: odd, tries: append(v.attempts(ctx, s, odd, two), best)}
		found := *s
		if err := v.walk(ctx, look, []*subject{&found}, state); err != nil {
			return nil, err
		}
		best = slices.MaxFunc(look.tries, func(a, b *attempt) int { return len(a.explains) - len(b.explains) })
	}
	if len(best.explains) == 0 {
		return &attempt{}, nil
	}
	return best, nil
}

// compareOdd finds the attempts that explain differing records of an event.
func (p *feedPass) compareOdd(c *comparison, ev *source.Event, pos source.Position, key []byte) error {
	for i := range p.odd {
		odd := &p.odd[i]
		if string(odd.Key) != string(key) {
			continue
		}
		for _, try := range p.tries {
			if try.encoder == nil || try.explains[i] {
				continue
			}
			var rec envelope.Record
			_, emit, err := try.encoder.Append(nil, &rec, ev, pos)
			if err != nil || !emit {
				return err
			}
			whole, second := p.expected(&rec), p.tombstone(&rec)
			if c.Same(&whole, odd) || rec.Tombstone && c.Same(&second, odd) {
				try.explains[i] = true
			}
		}
	}
	return nil
}
