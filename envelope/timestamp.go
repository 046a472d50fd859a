package envelope

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
)

// Timestamp is a hybrid logical clock's time, as CockroachDB writes it.
type Timestamp struct {
	Wall    int64 // ns since 1970
	Logical int32 // order within the same ns
}

// AppendText appends "<ns>.<10 digits>".
func (t Timestamp) AppendText(b []byte) []byte {
	b = strconv.AppendInt(b, t.Wall, 10)
	b = append(b, ".0000000000"...)
	digits := b[len(b)-10:]
	for v, i := t.Logical, 9; v > 0; v, i = v/10, i-1 {
		digits[i] = byte('0' + v%10)
	}
	return b
}

// String returns "<ns>.<10 digits>".
func (t Timestamp) String() string { return string(t.AppendText(nil)) }

// Compare orders timestamps.
func (t Timestamp) Compare(o Timestamp) int {
	return cmp.Or(cmp.Compare(t.Wall, o.Wall), cmp.Compare(t.Logical, o.Logical))
}

// ParseTimestamp parses what String returns.
func ParseTimestamp(s string) (Timestamp, error) {
	wall, logical, ok := strings.Cut(s, ".")
	w, err1 := strconv.ParseInt(wall, 10, 64)
	l, err2 := strconv.ParseInt(logical, 10, 32)
	if !ok || err1 != nil || err2 != nil || len(logical) != 10 || w < 0 || l < 0 {
		return Timestamp{}, fmt.Errorf("timestamp %q: want <nanoseconds>.<10 digits>", s)
	}
	return Timestamp{Wall: w, Logical: int32(l)}, nil
}
