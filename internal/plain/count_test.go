package plain

import "testing"

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
