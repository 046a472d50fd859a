package config

import (
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// checkBounds reports a value that is none of oneof, or outside of min and max. An empty text is left to others: it may
// be required.
func (s setting) checkBounds(settings any, failed func(problem string)) {
	v := s.of(settings)
	switch have := v.Interface().(type) {
	case List:
		if slices.ContainsFunc(have, func(item string) bool { return !s.takes(item) }) {
			failed("want one or more of " + strings.Join(s.oneOf, ", "))
		}
	case string:
		if !s.takes(have) && (have != "" || s.def != "") {
			failed("want one of " + strings.Join(s.oneOf, ", "))
		}
	}
	low, high := s.min != "" && v.Int() < s.bound(s.min), s.max != "" && v.Int() > s.bound(s.max)
	switch {
	case (low || high) && s.max != "":
		failed("want " + s.min + " to " + s.max)
	case low:
		failed("want at least " + s.min)
	}
}

func (s setting) takes(value string) bool {
	return len(s.oneOf) == 0 || slices.Contains(s.oneOf, value)
}

// bound parses a tag as the setting's type does.
func (s setting) bound(text string) int64 {
	switch s.typ {
	case reflect.TypeFor[time.Duration]():
		d, _ := time.ParseDuration(text) // a test parses all tags
		return int64(d)
	case reflect.TypeFor[Bytes]():
		var b Bytes
		_ = b.Decode(text)
		return int64(b)
	}
	n, _ := strconv.ParseInt(text, 10, 64)
	return n
}
