package plain

import (
	"strconv"
	"strings"
	"time"
)

// Number formats n with a comma between thousands.
func Number[N int | int32 | int64](n N) string {
	s := strconv.FormatInt(int64(n), 10)
	for i := len(s) - 3; i > 0 && s[i-1] != '-'; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// Count formats a number of things, whose name is in the singular: 1 broker, 2 brokers, 1,200 dead letters.
func Count[N int | int32 | int64](n N, thing string) string {
	if n == 1 {
		return "1 " + thing
	}
	if l := len(thing); l > 1 && thing[l-1] == 'y' && thing[l-2] != 'a' && thing[l-2] != 'e' && thing[l-2] != 'o' {
		return Number(n) + " " + thing[:l-1] + "ies"
	}
	return Number(n) + " " + thing + "s"
}

// Span formats a duration without the parts that do not matter, such as the seconds of hours.
func Span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return Count(int(d.Hours()/24), "day")
	case d.Round(time.Second) >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}

// Shell quotes a word for a shell, if it must be.
func Shell(word string) string {
	special := func(r rune) bool {
		plain := r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
		return !plain && !strings.ContainsRune("._:@/=-", r)
	}
	if word != "" && !strings.ContainsFunc(word, special) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
