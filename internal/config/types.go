package config

import (
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strconv"
	"strings"
)

// Secret is a value that is never shown.
type Secret string

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(set)"
}

// Format keeps every verb of fmt from showing it.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, s.String()) }

// LogValue keeps it out of logs.
func (s Secret) LogValue() slog.Value { return slog.StringValue(s.String()) }

// MarshalText keeps encoders from showing it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Decode is called by envconfig.
func (s *Secret) Decode(text string) error {
	*s = Secret(strings.TrimSpace(text))
	return nil
}

// Text is a value that may also come from a file. Unlike a Secret, it is shown.
type Text string

// Decode is called by envconfig.
func (s *Text) Decode(text string) error {
	*s = Text(strings.TrimSpace(text))
	return nil
}

// List is written with commas. Spaces around its items do not count, nor do empty ones: nothing in the feed would equal
// them.
type List []string

// not excludes an item of a list that selects events.
const not = "!"

// Included returns the items that the list selects.
func (l List) Included() (items []string) {
	for _, item := range l {
		if !strings.HasPrefix(item, not) {
			items = append(items, item)
		}
	}
	return items
}

// Excluded returns the items that the list excludes.
func (l List) Excluded() (items []string) {
	for _, item := range l {
		if item, ok := strings.CutPrefix(item, not); ok {
			items = append(items, item)
		}
	}
	return items
}

// Decode is called by envconfig.
func (l *List) Decode(text string) error {
	*l = nil
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item != "" {
			*l = append(*l, item)
		}
	}
	return nil
}

// Bytes is a size, written as 65536, 64KiB, 4MiB or 1GiB.
type Bytes int

var units = []struct {
	suffix string
	size   float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

const maxBytes = 1 << 40

// Decode is called by envconfig.
func (b *Bytes) Decode(text string) error {
	for _, u := range units {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || n < 0 || n*u.size > maxBytes {
			break
		}
		*b = Bytes(n * u.size)
		return nil
	}
	return errors.New("want a size up to 1TiB such as 65536, 64KiB or 4MiB")
}
