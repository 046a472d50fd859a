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

// settings are the options that add fields to a value.
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
		func(*Encoder) string { return "`{\"payload\": …, \"schema\": …}`" }},
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

// optionTable returns, as Markdown, what each option writes with each envelope, or – if it is invalid: with JSON, then
// what differs with Avro. An option that makes no difference between the envelopes is not shown.
func optionTable() string {
	var b strings.Builder
	row := func(s *setting, f Format) (cells []string) {
		for e := range Enriched + 1 {
			if f == Avro && e == Row {
				continue // all of it is invalid
			}
			cell, err := s.cell(f, e)
			if err != nil {
				cell = "–"
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
		if f == JSON {
			b.WriteByte('\n')
		}
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
	return cmp.Or(code(added), "`before`: also what the event says"), nil // diff, of the enriched envelope
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

func code(names []string) string {
	if len(names) == 0 {
		return ""
	}
	return "`" + strings.Join(names, "` `") + "`"
}
