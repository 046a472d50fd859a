package soak

import (
	"slices"
	"time"
)

// Sample is what a process needs at a time.
type Sample struct {
	At    time.Time
	Value float64
}

// Fifths returns the medians of the samples' five parts. The first holds the start.
func Fifths(samples []Sample) (medians [5]float64) {
	for i := range medians {
		part := samples[i*len(samples)/5 : (i+1)*len(samples)/5]
		if len(part) > 0 {
			medians[i] = median(part)
		}
	}
	return medians
}

// Flat reports whether the last fifth is not above the second by more than a quarter and some slack.
func Flat(medians [5]float64, slack float64) bool { return medians[4] <= 1.25*medians[1]+slack }

func median(samples []Sample) float64 {
	var values []float64
	for _, s := range samples {
		values = append(values, s.Value)
	}
	slices.Sort(values)
	return values[len(values)/2]
}

func highest(samples []Sample) (h Sample) {
	for i, s := range samples {
		if i == 0 || s.Value > h.Value {
			h = s
		}
	}
	return h
}
