package plain

import (
	"testing"
	"time"
)

// People read "1 broker" and "1,200 dead letters".
func TestCount(t *testing.T) {
	for want, got := range map[string]string{
		"1 broker": Count(1, "broker"), "0 brokers": Count(0, "broker"), "1,200 dead letters": Count(1200, "dead letter"),
		"2 keys": Count(int64(2), "key"), "3 entries": Count(int32(3), "entry"), "-1,234,567 rows": Count(-1234567, "row"),
		"999": Number(999), "-999": Number(-999), "1,000": Number(1000),
	} {
		if got != want {
			t.Errorf("%q, want %q", got, want)
		}
	}
}

// A duration shows seconds while they matter.
func TestSpan(t *testing.T) {
	for d, want := range map[time.Duration]string{
		28400 * time.Millisecond: "28s", 209 * time.Second: "3m29s", 3600 * time.Second: "1h0m",
		77*time.Minute + 31*time.Second: "1h18m", 49 * time.Hour: "2 days",
	} {
		if got := Span(d); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
}

// A word comes back as it was, and nothing in it is a command.
func TestShell(t *testing.T) {
	for word, want := range map[string]string{"": "''", "User:a@b.c": "User:a@b.c", "User:CN=a b": "'User:CN=a b'", "a b": "'a b'",
		"o'hara;rm": `'o'\''hara;rm'`, "$(x)": "'$(x)'"} {
		if got := Shell(word); got != want {
			t.Errorf("%q: %s, want %s", word, got, want)
		}
	}
}
