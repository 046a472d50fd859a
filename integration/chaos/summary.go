package chaos

import (
	"fmt"
	"strings"

	"blobfeed/verify"
)

// Summary counts what a Judge has read. A check that has judged nothing proves nothing.
type Summary struct {
	Data, Markers int64
	Partitions    int // that had records
	Checks        []Check
}

// Check is the result of a validator.
type Check struct {
	Name     string
	Checked  int64 // judged records, or markers; all data if the validator does not count
	Failures []verify.Failure
}

// OK reports whether there was data, and every check has judged something and not failed.
func (s Summary) OK() bool {
	for _, c := range s.Checks {
		if c.Checked == 0 || len(c.Failures) > 0 {
			return false
		}
	}
	return s.Data > 0
}

// String returns a line of counts, a line per check, and the failures below it.
func (s Summary) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d records and %d markers on %d partitions\n", s.Data, s.Markers, s.Partitions)
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

// Summary is the judgement so far.
func (j *Judge) Summary() Summary {
	j.mu.Lock()
	defer j.mu.Unlock()
	s := Summary{Data: j.data, Markers: j.marks, Partitions: len(j.next)}
	for _, v := range j.validators {
		name := fmt.Sprintf("%T", v)
		c := Check{strings.ToLower(name[strings.LastIndexByte(name, '.')+1:]), j.data, v.Failures()}
		if counting, ok := v.(interface{ Checked() int64 }); ok {
			c.Checked = counting.Checked()
		}
		s.Checks = append(s.Checks, c)
	}
	return s
}
