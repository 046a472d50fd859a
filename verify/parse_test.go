package verify

import (
	"bytes"
	"testing"
)

func TestParsePosition(t *testing.T) {
	for text, want := range map[string]position{
		"2020/05/27/1500/00/00000/1488/3":         {202005271500, 0, [3]uint64{0, 1488, 3}},
		"2026/12/31/2345/11/100000/5000000000/":   {},
		"2026/12/31/2345/11/100000/5000000000/12": {202612312345, 11, [3]uint64{100000, 5000000000, 12}},
		"2026-12-31-2345/11/100000/5000000000/12": {},
		"2026/12/31/23x5/11/1/1/1":                {},
		"2026/12/31/2345/11/1/1/1/":               {},
		"2026/12/31/2345/11/1/1":                  {},
		"2026/12/31/2345/11/1/1/-1":               {},
		"2026/12/31/2345//1/1/1":                  {},
		"2026/12/31/2345":                         {},
		"":                                        {},
	} {
		if got, ok := parsePosition([]byte(text)); ok != (want != position{}) || ok && got != want {
			t.Errorf("%q is %+v, %t", text, got, ok)
		}
	}
}

func TestParseClock(t *testing.T) {
	for text, want := range map[string]clock{
		"1590607342135129200.0000000045":  {1590607342135129200, 45},
		"1590607342135129200.2147483647":  {1590607342135129200, 2147483647},
		"1590607342135129200":             {},
		"1590607342135129200.45":          {},
		"1590607342135129200.0000000045x": {},
		"-1.0000000045":                   {},
		"99999999999999999999.0000000000": {},
		".0000000000":                     {},
		"":                                {},
	} {
		if got, ok := parseClock([]byte(text)); ok != (want != clock{}) || ok && got != want {
			t.Errorf("%q is %+v, %t", text, got, ok)
		}
	}
}

// Each is less than the next.
func TestSequenceCompares(t *testing.T) {
	texts := []string{
		"0",
		"9",
		"a",
		"B",
		"00000000000000000000000000000293000000000058eb1f",
		"293000000000058EB20",
		"0000000000000000000000000000029300000000FFFFFFFF",
		"000000000000000000000000000002AA0000000000000000",
		"000000000000000000000000000002ab0000000000000000",
		"ffffffffffffffffffffffffffffffffffffffffffffffff",
	}
	var last sequence
	for i, text := range texts {
		s, ok := parseSequence([]byte(text))
		if !ok || i > 0 && bytes.Compare(s[:], last[:]) <= 0 {
			t.Errorf("%s is %x, %t; the one before is %x", text, s, ok, last)
		}
		last = s
	}
	for _, text := range []string{"", "g", " 1", "fffffffffffffffffffffffffffffffffffffffffffffffff"} {
		if _, ok := parseSequence([]byte(text)); ok {
			t.Errorf("%q is a sequence", text)
		}
	}
}
