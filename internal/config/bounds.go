package config

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// checkBounds reports a value that is none of oneof, or outside of min and max. An empty text is left to others: it may
// be required.
func (s setting) checkBounds(settings any, failed func(problem string)) {
	v := s.of(settings)
	switch have := v.Interface().(type) {
	case List:
		for _, item := range have {
			if !s.takes(item) {
				failed(s.invalid(item, "want one or more of "+strings.Join(s.oneOf, ", ")))
			}
		}
	case string:
		if !s.takes(have) && (have != "" || s.def != "") {
			failed(s.invalid(have, "want one of "+strings.Join(s.oneOf, ", ")))
		}
	}
	low, high := s.min != "" && v.Int() < s.bound(s.min), s.max != "" && v.Int() > s.bound(s.max)
	switch value := fmt.Sprint(v.Interface()); {
	case (low || high) && s.max != "":
		failed(s.invalid(value, "want "+s.min+" to "+s.max))
	case low:
		failed(s.invalid(value, "want at least "+s.min))
	}
}

// invalid says which value the setting does not take, unless it may be a secret, and what it takes.
func (s setting) invalid(value, want string) string {
	shown := strconv.Quote(value)
	if s.secret() || len(value) > longestWord || redact(s.name, value) != value {
		shown = hidden
	}
	return "invalid value " + shown + ": " + want
}

// longestWord is the length from which a value is none of the words that a setting takes, with some letters wrong, but
// something else that was pasted there.
const longestWord = 40

func (s setting) takes(value string) bool {
	return len(s.oneOf) == 0 || slices.Contains(s.oneOf, value)
}

// bound parses a tag as the setting's type does.
func (s setting) bound(text string) int64 {
	v := reflect.New(s.typ).Elem()
	_ = parse(v, text) // a test parses all tags
	return v.Int()
}
