package offsets

import "testing"

// A bridge of the version before may follow when it would break no promise behind the scan: see version.go.
func TestScanMatters(t *testing.T) {
	const early, late = "1769857200000000000.0000000000", "1769860800000000000.0000000000"
	initial := &Scan{Initial: true, Listed: late, Done: true}
	for name, c := range map[string]struct {
		scan     *Scan
		resolved string
		want     bool
	}{
		"no scan":                       {nil, "", false},
		"not done":                      {&Scan{}, late, true},
		"no marker behind it":           {initial, early, true},
		"no marker at all":              {initial, "", true},
		"a marker of last century":      {initial, "999999999000000000.0000000000", true},
		"a marker behind it":            {initial, late, false},
		"another scan in its place":     {&Scan{Done: true, Bar: initial.Listed}, early, true},
		"another scan, and a marker":    {&Scan{Done: true, Bar: initial.Listed}, late, false},
		"another scan without a marker": {&Scan{Done: true, Listed: late}, early, false},
	} {
		if got := c.scan.matters(&Frontier{Resolved: c.resolved}); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
