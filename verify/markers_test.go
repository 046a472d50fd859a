package verify_test

import (
	"fmt"
	"strings"
	"testing"

	"blobfeed/verify"
)

// stamp is the text of a time that is so many seconds after another.
func stamp(s int) string {
	return fmt.Sprintf("%d.0000000000", 1_700_000_000_000_000_000+s*1_000_000_000)
}

// says is a marker as the bridge writes it.
func says(partition int32, s int) verify.Record {
	return verify.Record{Topic: "t", Partition: partition, Value: fmt.Appendf(nil, `{"resolved":%q}`, stamp(s)),
		Headers: []verify.Header{{Key: "resolved", Value: []byte(stamp(s))}}, Millis: 1_700_000_000_000 + int64(s)*1000}
}

// What is known of markers beyond the topic is compared with those that came.
func TestResolvedIsExpected(t *testing.T) {
	for name, c := range map[string]struct {
		known   func(v *verify.Resolved)
		markers []int
		problem string
	}{
		"nothing is known":    {func(*verify.Resolved) {}, []int{1, 2}, ""},
		"all are expected":    {expect(1, 2), []int{1, 2}, ""},
		"one is not expected": {expect(1, 3), []int{1, 2, 3}, "no segment of the feed explains"},
		"from before all":     {expect(2, 3), []int{1, 2, 3}, ""},
		"expected, not due":   {expect(1, 2, 3), []int{1, 2}, ""},
		"due": {due(1, 2, 3), []int{1, 2},
			"partition 0 lacks 1 of 3 markers; the first is " + stamp(3)},
		"due, in the middle": {due(1, 2, 3), []int{1, 3}, "the first is " + stamp(2)},
		"due, none came":     {due(1), nil, "lacks 1 of 1 markers"},
		"by the state":       {func(v *verify.Resolved) { v.Last(stamp(2), stamp(2)) }, []int{1, 2}, ""},
		"less": {func(v *verify.Resolved) { v.Last(stamp(2), stamp(3)) }, []int{1},
			"by the state there is one for " + stamp(2)},
		"more": {func(v *verify.Resolved) { v.Last(stamp(1), stamp(2)) }, []int{1, 3},
			"by the state nothing above " + stamp(2)},
		"none": {func(v *verify.Resolved) { v.Last(stamp(1), "") }, nil, "has no marker"},
	} {
		t.Run(name, func(t *testing.T) {
			v := verify.NewResolved(1)
			c.known(v)
			v.Note(verify.Record{Topic: "t", Key: []byte("k"),
				Headers: []verify.Header{{Key: "updated", Value: []byte(stamp(0))}}})
			for _, s := range c.markers {
				v.Note(says(0, s))
			}
			if f := v.Failures(); len(f) > 0 != (c.problem != "") || !strings.Contains(fmt.Sprint(f), c.problem) {
				t.Errorf("%v, want %q", f, c.problem)
			}
		})
	}
}

func expect(all ...int) func(*verify.Resolved) {
	return func(v *verify.Resolved) {
		for _, s := range all {
			v.Expect(stamp(s))
		}
	}
}

func due(all ...int) func(*verify.Resolved) {
	return func(v *verify.Resolved) {
		expect(all...)(v)
		for _, s := range all {
			v.Require(stamp(s))
		}
	}
}

// A marker's value is what readers read: the header alone is no marker.
func TestMarkerValue(t *testing.T) {
	for value, problem := range map[string]string{
		`{"resolved":"` + stamp(1) + `"}`:                "",
		`{"__crdb__":{"resolved":"` + stamp(1) + `"}}`:   "",
		`{"payload": {"resolved":"` + stamp(1) + `"}}`:   "",
		`{"resolved":"` + stamp(2) + `"}`:                "its value",
		`{"garbage":1}`:                                  "its value no time",
		"":                                               "its value no time",
		"\x00\x00\x00\x00\x01" + "\x02" + "not a marker": "", // Avro, which nobody reads here
	} {
		v, r := verify.NewResolved(1), says(0, 1)
		if r.Value = []byte(value); value == "" {
			r.Value = nil
		}
		v.Note(r)
		if f := v.Failures(); len(f) > 0 != (problem != "") || !strings.Contains(fmt.Sprint(f), problem) {
			t.Errorf("%q: %v, want %q", value, f, problem)
		}
	}
}

// Markers in a topic of their own come in front of the records behind the place of which they speak.
func TestMarkerTopic(t *testing.T) {
	a := verify.NewMarkerTopic("t")
	for i, at := range []int{3, 3, 2, 7} {
		r := says(0, i)
		r.Topic, r.Offset = "t.resolved", int64(i)
		r.Value = fmt.Appendf(nil, `{"resolved":%q,"partition":0,"offset":%d}`, stamp(i), at)
		a.Add(r)
	}
	for range 2 {
		a.Rewind()
		order := ""
		note := func(r verify.Record) bool {
			if r.Topic != "t" || r.In != "t.resolved" {
				t.Errorf("%s in %s", r.Topic, r.In)
			}
			order += fmt.Sprintf(" m%d", r.Offset)
			return true
		}
		for offset := range int64(8) {
			a.Show(0, offset, note)
			order += fmt.Sprint(" ", offset)
		}
		if order != " 0 1 2 m0 m1 m2 3 4 5 6 m3 7" {
			t.Errorf("the order is%s", order)
		}
	}
}
