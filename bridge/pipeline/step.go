package pipeline

import "time"

// Step is a part of the work, from its first begin to its last end: a transaction can have hundreds of blocks.
type Step struct {
	Began, Ended time.Time
	Busy         time.Duration // spent in it; more than the time between where shards are side by side
}

// Add extends s by another part of the same work.
func (s *Step) Add(o Step) {
	if o.Began.IsZero() {
		return
	}
	if s.Began.IsZero() || o.Began.Before(s.Began) {
		s.Began = o.Began
	}
	if o.Ended.After(s.Ended) {
		s.Ended = o.Ended
	}
	s.Busy += o.Busy
}

// Between returns the step that took all of the time between two moments.
func Between(began, ended time.Time) Step {
	return Step{Began: began, Ended: ended, Busy: ended.Sub(began)}
}
