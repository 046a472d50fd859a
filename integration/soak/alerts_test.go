package soak

import (
	"strings"
	"testing"
	"time"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

func at(seconds int) time.Time { return noon.Add(time.Duration(seconds) * time.Second) }

// series is ALERTS of one alert and state, from one second to another.
func series(name, state string, from, to int) Series {
	s := Series{Labels: map[string]string{"alertname": name, "alertstate": state}}
	for n := from; n <= to; n += int(evaluation.Seconds()) {
		s.Samples = append(s.Samples, Sample{at(n), 1})
	}
	return s
}

// What Prometheus says of alerts is judged by what a block does to them.
func TestJudge(t *testing.T) {
	block := Span{at(0), at(600)}
	expected := map[string]Expectation{
		"Down": {Within: time.Minute, Clear: time.Minute, For: 5 * time.Minute},
	}
	good := []Series{series("Down", "pending", 30, 325), series("Down", "firing", 330, 610)}
	for name, c := range map[string]struct {
		series []Series
		want   string // of each failure
	}{
		"as it should": {good, ""},
		"nothing":      {nil, "Down did not fire; Down did not hold"},
		"late": {[]Series{series("Down", "pending", 65, 325), series("Down", "firing", 330, 610)},
			"Down did not hold"},
		"with a break": {[]Series{series("Down", "pending", 30, 325), series("Down", "firing", 340, 610)},
			"Down did not hold"},
		"ends early": {[]Series{series("Down", "pending", 30, 325), series("Down", "firing", 330, 590)},
			"Down did not fire; Down did not hold"},
		"never fires": {[]Series{series("Down", "pending", 30, 610)}, "Down did not fire"},
		"clears late": {[]Series{series("Down", "pending", 30, 325), series("Down", "firing", 330, 665)},
			"Down held from"},
		"before the block": {append([]Series{series("Down", "pending", -60, -50)}, good...), "Down held from"},
		"nobody expected":  {append([]Series{series("Other", "pending", 100, 100)}, good...), "Other held from"},
		"several series of it": {append([]Series{series("Down", "pending", 40, 300),
			series("Down", "firing", 305, 600)}, good...), ""},
	} {
		t.Run(name, func(t *testing.T) {
			got := Judge(alerts(c.series), block, expected)
			want := strings.Split(c.want, "; ")
			if c.want == "" {
				want = nil
			}
			if len(got) != len(want) {
				t.Fatalf("judged %q, want %q", got, want)
			}
			for i := range got {
				if !strings.HasPrefix(got[i], want[i]) {
					t.Errorf("judged %q, want %q", got[i], want[i])
				}
			}
		})
	}
	// A block that is shorter than what an alert waits for.
	short := Span{at(0), at(75)}
	if got := Judge(alerts([]Series{series("Down", "pending", 30, 85)}), short, expected); len(got) > 0 {
		t.Errorf("judged %q of a short block", got)
	}
}
