package plain

import "strconv"

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
