package verify

import (
	"fmt"
	"strings"
)

// Group combines several validators.
type Group struct {
	validators []Validator
	data, mark int64
	doc        document
	topics     byTopic[map[int32]bool] // the partitions of each
}

var (
	_ Validator = (*Group)(nil)
	_ Validator = (*Unique)(nil)
	_ Validator = (*Order)(nil)
	_ Validator = (*Sequence)(nil)
	_ Validator = (*Partition)(nil)
	_ Validator = (*Schema)(nil)
	_ Validator = (*Resolved)(nil)
	_ Validator = (*Scan)(nil)
	_ Validator = (*Before)(nil)
	_ Validator = (*Table)(nil)
	_ Validator = (*Time)(nil)
	_ Validator = (*Replay)(nil)
)

// All returns a Group that shows each record to all validators.
func All(validators ...Validator) *Group {
	return &Group{validators: validators, topics: mapsByTopic[int32, bool]()}
}

// Note implements Validator.
func (g *Group) Note(r Record) {
	if r.Key == nil {
		g.mark++
	} else {
		g.data++
	}
	if partitions := *g.topics.at(r.Topic); !partitions[r.Partition] {
		partitions[r.Partition] = true
	}
	g.doc.parsed = false
	r.doc = &g.doc
	for _, v := range g.validators {
		v.Note(r)
	}
}

// Failures implements Validator. It prefixes the failures of each validator with its name.
func (g *Group) Failures() []Failure {
	var all []Failure
	for _, v := range g.validators {
		for _, f := range v.Failures() {
			f.Problem = name(v) + ": " + f.Problem
			all = append(all, f)
		}
	}
	return all
}

// Summary counts what a Group has judged. A check that has judged nothing proves nothing.
type Summary struct {
	Topics, Partitions int // that had records
	Data, Markers      int64
	Checks             []Check
}

// Check is the result of one validator.
type Check struct {
	Name     string
	Checked  int64 // judged records, or markers; all data if the validator does not count
	Failures []Failure
}

// OK reports whether something was checked, and nothing failed.
func (c Check) OK() bool { return c.Checked > 0 && len(c.Failures) == 0 }

// Summary returns what was seen so far.
func (g *Group) Summary() Summary {
	s := Summary{Topics: len(g.topics.all), Data: g.data, Markers: g.mark}
	for _, partitions := range g.topics.all {
		s.Partitions += len(*partitions)
	}
	for _, v := range g.validators {
		c := Check{Name: name(v), Checked: g.data, Failures: v.Failures()}
		if counting, ok := v.(interface{ Checked() int64 }); ok {
			c.Checked = counting.Checked()
		}
		s.Checks = append(s.Checks, c)
	}
	return s
}

// OK reports whether there was data, and every check has judged something and not failed. So leave out a validator that
// does not apply, such as Before if no record has a before.
func (s Summary) OK() bool {
	for _, c := range s.Checks {
		if !c.OK() {
			return false
		}
	}
	return s.Data > 0
}

// String returns a line of counts, a line per check, and the failures below it.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d records and %d markers on %d partitions of %d topics\n",
		s.Data, s.Markers, s.Partitions, s.Topics)
	for _, c := range s.Checks {
		result := "ok"
		switch {
		case len(c.Failures) > 0:
			result = "FAILED"
		case c.Checked == 0:
			result = "not checked"
		}
		fmt.Fprintf(&b, "%-10s %s, %d\n", c.Name, result, c.Checked)
		for _, f := range c.Failures {
			fmt.Fprintf(&b, "    %v\n", f)
		}
	}
	return b.String()
}

// name returns the name of a validator's type, without its package.
func name(v Validator) string {
	text := fmt.Sprintf("%T", v)
	return strings.ToLower(text[strings.LastIndexByte(text, '.')+1:])
}
