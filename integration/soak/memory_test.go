package soak

import (
	"testing"
	"time"
)

func TestFlat(t *testing.T) {
	ramp := func(from, to float64) (all []Sample) {
		for n := range 100 {
			all = append(all, Sample{time.Unix(int64(n), 0), from + (to-from)*float64(n)/99})
		}
		return all
	}
	steady := ramp(100, 100)
	steady[50].Value = 900 // a burst is no growth
	if m := Fifths(steady); m != [5]float64{100, 100, 100, 100, 100} || !Flat(m, 0) {
		t.Errorf("steady: %v", m)
	}
	if h := highest(steady); h.Value != 900 || h.At != time.Unix(50, 0) {
		t.Errorf("highest: %v", h)
	}
	if m := Fifths(ramp(100, 160)); Flat(m, 0) || !Flat(m, 20) {
		t.Errorf("growing: %v", m)
	}
}
