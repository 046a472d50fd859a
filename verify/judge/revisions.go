package judge

import (
	"context"
	"slices"
	"strings"

	"blobfeed/envelope"
	"blobfeed/verify"
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
	flag("!before", now.NoBefore, func(o *envelope.Options) *bool { return &o.NoBefore })
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
	buf      []byte
}

// attempts returns guesses with one change of settings, or with two.
func (v *verification) attempts(ctx context.Context, topic string, odd []verify.Record, two bool) (all []*attempt) {
	try := func(cs ...revision) {
		o := v.Record
		var names []string
		for _, c := range cs {
			c.set(&o)
			names = append(names, c.names)
		}
		o.Topic, o.Account = topic, v.Account
		if o.Validate() != nil {
			return
		}
		if e, err := v.EncoderOf(ctx, o); err == nil { // without a schema in the registry, no record was written
			all = append(all, &attempt{names: strings.Join(names, " and "), encoder: e, explains: map[int]bool{}})
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
