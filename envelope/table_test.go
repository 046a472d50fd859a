package envelope

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// setting is an option, and what it writes where it is not refused; nil: the fields that it adds.
type setting struct {
	name   string
	set    func(*Options)
	writes func(*Encoder) string
}

func says(text string) func(*Encoder) string { return func(*Encoder) string { return text } }

// settings are all options but those of keys and headers, which are free to choose.
var settings = []setting{
	{"none of these", func(*Options) {}, func(e *Encoder) string {
		return cmp.Or(code(e.value.fields("")), "no bytes")
	}},
	{"updated", func(o *Options) { o.Updated, o.Properties = true, sourceOf(o) }, nil},
	{"mvcc_timestamp", func(o *Options) { o.MVCCTimestamp, o.Properties = true, sourceOf(o) }, nil},
	{"diff", func(o *Options) { o.Diff = true }, nil},
	{"key_in_value", func(o *Options) { o.KeyInValue = true }, nil},
	{"topic_in_value", func(o *Options) { o.TopicInValue = true }, nil},
	{"enriched_properties=source", func(o *Options) { o.Properties |= Source }, nil},
	{"enriched_properties=schema", func(o *Options) { o.Properties |= Schema },
		says("`{\"payload\": …, \"schema\": …}`")},
	{"!before", func(o *Options) { o.NoBefore = true }, says("no `before`")},
	{"deletes=envelope", func(o *Options) { o.Deletes = DeletesEnvelope }, (*Encoder).deletion},
	{"deletes=tombstone", func(o *Options) { o.Deletes = DeletesTombstone }, says("null")},
	{"deletes=both", func(o *Options) { o.Deletes = DeletesBoth }, func(e *Encoder) string {
		return e.deletion() + "; then null"
	}},
	{"deletes=empty", func(o *Options) { o.Deletes = DeletesEmpty }, says("no bytes")},
	{"events=all", func(o *Options) { o.Events = EventsAll }, says("more events")},
	{"avro_timestamps=millis", func(o *Options) { o.AvroTimestamps = Millis }, says("`event_time`: timestamp-millis")},
	{"avro_timestamps=string", func(o *Options) { o.AvroTimestamps = Text }, says("`event_time`: string")},
}

// sourceOf turns on what the enriched envelope needs for times.
func sourceOf(o *Options) Properties {
	if o.Envelope == Enriched {
		return o.Properties | Source
	}
	return o.Properties
}

// plainest returns the options with as little on as there can be.
func plainest(f Format, e Envelope) Options {
	o := Options{Format: f, Envelope: e, Topic: "topic"}
	if e == Row {
		o.Deletes = DeletesTombstone
	}
	if f == Avro {
		o.KeyFormat = KeyAvro
	}
	return o
}

// optionTable returns, as Markdown, what each option writes with each envelope, or why it is invalid: with JSON, then
// what differs with Avro. An option that makes no difference between the envelopes is not shown.
func optionTable() string {
	var reasons []string
	var b strings.Builder
	row := func(s *setting, f Format) (cells []string) {
		for e := range Enriched + 1 {
			if f == Avro && e == Row {
				continue // all of it is invalid
			}
			cell, err := s.cell(f, e)
			if err != nil && strings.Contains(err.Error(), " is only usable with envelope=") {
				cell = "–" // the other cells show it
			} else if err != nil {
				i := slices.Index(reasons, err.Error())
				if i < 0 {
					i = len(reasons)
					reasons = append(reasons, err.Error())
				}
				cell = fmt.Sprintf("(%d)", i+1)
			}
			cells = append(cells, cell)
		}
		return cells
	}
	for _, f := range []Format{JSON, Avro} {
		fmt.Fprintf(&b, "| format=%s |", f)
		n := 1
		for e := range Enriched + 1 {
			if f == JSON || e != Row {
				fmt.Fprintf(&b, " %s |", e)
				n++
			}
		}
		b.WriteString("\n|" + strings.Repeat("---|", n) + "\n")
		for i := range settings {
			s := &settings[i]
			cells := row(s, f)
			alike := len(slices.Compact(slices.Clone(cells))) == 1
			if f == JSON && alike || f == Avro && slices.Equal(cells, slices.Delete(row(s, JSON), int(Row), int(Row)+1)) {
				continue
			}
			fmt.Fprintf(&b, "| %s | %s |\n", s.name, strings.Join(cells, " | "))
		}
		b.WriteByte('\n')
	}
	for i, r := range reasons {
		fmt.Fprintf(&b, "%d. %s\n", i+1, strings.ReplaceAll(r, "\n", "; "))
	}
	return b.String()
}

func (s *setting) cell(f Format, env Envelope) (string, error) {
	o := plainest(f, env)
	base, err := compile(o, anyTable)
	if err != nil {
		return "", err
	}
	s.set(&o)
	e, err := compile(o, anyTable)
	if err != nil {
		return "", err
	}
	if s.writes != nil {
		return s.writes(e), nil
	}
	without := base.value.fields("")
	added := slices.DeleteFunc(e.value.fields(""), func(name string) bool { return slices.Contains(without, name) })
	return cmp.Or(code(added), "`before`: what the event says, not only the key"), nil // diff, of the enriched envelope
}

// anyTable is a table of which the columns don't matter.
var anyTable = table{name: "t", key: []column{{name: "…", field: never}}, columns: []column{{name: "…", field: never}}}

// fields names what is in a value.
func (f *record) fields(prefix string) (all []string) {
	if f == nil {
		return nil
	}
	for _, c := range f.columns {
		if part, ok := c.field.(*record); ok && len(part.columns) > 0 {
			all = append(all, part.fields(prefix+c.name+".")...)
		} else {
			all = append(all, prefix+c.name)
		}
	}
	return all
}

// deletion says what the envelope has in place of the row.
func (e *Encoder) deletion() string {
	switch e.o.Envelope {
	case Bare:
		return "the key, else null"
	case KeyOnly:
		return "no bytes"
	case Enriched:
		return "`after` null, `op` d"
	}
	return "`after` null"
}

func code(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "` `") + "`"
}
