package config

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

// Secret is text that is never shown.
type Secret string

func (s Secret) String() string {
	if s == "" {
		return ""
	}
	return "(set)"
}

// GoString keeps %#v from showing it.
func (s Secret) GoString() string { return s.String() }

// MarshalText keeps encoders from showing it.
func (s Secret) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// Decode is called by envconfig.
func (s *Secret) Decode(text string) error {
	*s = Secret(strings.TrimSpace(text))
	return nil
}

// Bytes is a size, written as 65536, 64KiB, 4MiB or 1GiB.
type Bytes int

var units = []struct {
	suffix string
	size   float64
}{{"KiB", 1 << 10}, {"MiB", 1 << 20}, {"GiB", 1 << 30}, {"B", 1}, {"", 1}}

// Decode is called by envconfig.
func (b *Bytes) Decode(text string) error {
	for _, u := range units {
		number, ok := strings.CutSuffix(strings.TrimSpace(text), u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseFloat(strings.TrimSpace(number), 64)
		if err != nil || n < 0 || n*u.size > math.MaxInt32 {
			break
		}
		*b = Bytes(n * u.size)
		return nil
	}
	return errors.New("want a size below 2GiB such as 65536, 64KiB or 4MiB")
}
