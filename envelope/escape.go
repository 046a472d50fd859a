package envelope

import (
	"fmt"
	"regexp"
	"strings"
)

// maxTopic is the maximum length of a topic's name, in bytes.
const maxTopic = 249

// escaped matches an escape. Such text in a name is itself escaped, so that escaping can be undone.
var escaped = regexp.MustCompile(`_u[0-9a-fA-F]{2,8}_`)

// KafkaName escapes the characters that a topic's name can't have, as CockroachDB does: _u, the rune in hexadecimal, _.
// It cuts the result at 249 bytes.
func KafkaName(s string) string {
	if s == "." || s == ".." {
		return strings.Repeat("_u002e_", len(s))
	}
	s = escapeTopic(s)
	return s[:min(len(s), maxTopic)]
}

// escapeTopic escapes a part of a topic's name.
func escapeTopic(s string) string {
	return escapeName(s, func(r rune) bool { return alphanumeric(r) || r == '_' || r == '.' || r == '-' })
}

// AvroName escapes the characters that a name in Avro can't have, as CockroachDB does.
func AvroName(s string) string {
	s = escapeName(s, func(r rune) bool { return alphanumeric(r) || r == '_' })
	if s != "" && s[0] >= '0' && s[0] <= '9' {
		s = escapeRune(rune(s[0])) + s[1:]
	}
	return s
}

func escapeName(s string, plain func(rune) bool) string {
	s = escaped.ReplaceAllStringFunc(s, func(match string) string {
		var b strings.Builder
		for _, r := range match {
			b.WriteString(escapeRune(r))
		}
		return b.String()
	})
	var b strings.Builder
	for _, r := range s {
		if plain(r) {
			b.WriteRune(r)
		} else {
			b.WriteString(escapeRune(r))
		}
	}
	return b.String()
}

func alphanumeric(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9'
}

func escapeRune(r rune) string {
	if r > 0xffff {
		return fmt.Sprintf("_u%08x_", r)
	}
	return fmt.Sprintf("_u%04x_", r)
}
