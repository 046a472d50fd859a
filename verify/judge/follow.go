package judge

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/resolved"
	"blobfeed/source"
)

// Followed is told what Follow does, by the goroutine that called it.
type Followed struct {
	// Verified gets the reports of a round, and the time up to which the topics are verified. First says that the round
	// compared everything.
	Verified func(reports []*Report, through time.Time, first bool)
	// Failed gets an error that will be retried.
	Failed func(error)
}

// longestPause bounds the wait after failures.
const longestPause = 5 * time.Minute

// Follow verifies the topics against the feed as they grow, in rounds. The first round compares everything up to the
// newest marker. Each later one compares what lies between two markers, so that nothing is kept of what is verified.
// After a seek or a reset, or when retention was faster, Follow starts again.
//
// It returns a *BrokenError at the first broken promise, nil when everything up to BRIDGE_END_TIME is verified, and the
// error of the context when that ends.
func Follow(ctx context.Context, o Options, to Followed) error {
	if err := o.followable(); err != nil {
		return err
	}
	s := &since{}
	for failures := 0; ; {
		v := newVerification(o)
		v.since = s
		reports, err := v.run(ctx)
		switch {
		case ctx.Err() != nil:
			return ctx.Err()
		case errors.As(err, new(*plain.SettingsError)):
			return err
		case errors.Is(err, errNothingNew):
			failures = 0
		case err != nil:
			failures++
			to.Failed(err)
		default:
			failures = 0
			to.Verified(reports, time.Unix(0, s.marker.Wall), s.completed == (source.Segment{}))
			if broken, is := errors.AsType[*BrokenError](Verdict(reports)); is {
				return broken
			}
			if s.ended {
				return nil
			}
			s.topics, s.completed = s.ends, s.next
		}
		if err := pause.For(ctx, min(o.Pace.PollInterval<<min(failures, 5), longestPause)); err != nil {
			return err
		}
	}
}

// followable rejects settings with which a marker does not say what must be before it.
func (o *Options) followable() error {
	switch {
	case !o.Kafka.Transactional:
		return plain.SettingsErrorf("--follow: with BRIDGE_DELIVERY=at_least_once events may be repeated behind a " +
			"marker: use --feed")
	case o.Records.Markers == envelope.MarkersOff:
		return plain.SettingsErrorf("--follow: BRIDGE_RESOLVED_TO=off: there are no markers")
	}
	return nil
}

// errNothingNew says that a round has nothing to compare yet.
var errNothingNew = errors.New("nothing is resolved that was not verified before")

// since is how far the topics are verified.
type since struct {
	epoch     int64
	completed source.Segment      // all events up to it are compared; zero: nothing is
	topics    map[string]roundEnd // by topic, where the next round begins
	sought    envelope.Timestamp  // of the last seek's marker

	next   source.Segment      // what the current round compares ends with it
	ends   map[string]roundEnd // of its topics, as far as they are judged
	marker envelope.Timestamp
	ended  bool // this is the last round: everything up to BRIDGE_END_TIME is delivered
}

// roundEnd is where reading continues: at the marker of the round before, since validators need it.
type roundEnd struct {
	from       map[int32]int64
	partitions int                // that keys were spread over
	marker     envelope.Timestamp // those below it in a topic of their own are left out
}

// begin decides what the round compares, by the state. A round ends with a segment whose marker is its own, and not one
// that repeats a former time: only then that marker is behind all events of the segment, and before all others. So none
// ends with a marker that was there before the last seek: what a seek back repeats comes behind it.
func (s *since) begin(ctx context.Context, v *verification) error {
	s.ends = map[string]roundEnd{}
	if v.state == nil {
		return errNothingNew // the bridge has not started
	}
	f := v.state.Frontier
	if f.Epoch != s.epoch {
		*s = since{epoch: f.Epoch, ends: s.ends}
	}
	if f.Reset || f.Moving || f.Completed == s.completed && !f.Ended {
		return errNothingNew
	}
	var err error
	if s.marker, err = envelope.ParseTimestamp(f.Resolved); err != nil {
		return errNothingNew // there is no marker yet
	}
	if !f.Ended && s.marker.Compare(s.sought) <= 0 {
		return errNothingNew
	}
	s.next = f.Completed
	if s.ended = f.Ended; s.ended {
		return nil // it is all there
	}
	m, err := v.Feed.Source.Manifest(ctx, f.Completed)
	switch {
	case errors.Is(err, source.ErrNotFound): // retention was faster
		return errNothingNew
	case err != nil:
		return err
	case resolved.After(m, v.Records.ResolvedSlack, envelope.Timestamp{}) != s.marker:
		return errNothingNew
	}
	v.Until = s.marker
	return nil
}

// resume makes a topic continue where the round before ended. If retention was faster, the next round is a first one.
func (s *since) resume(t *judgedTopic) error {
	at, known := s.topics[t.name]
	if !known {
		return nil
	}
	t.resumed = &at
	for p, from := range at.from {
		if t.from[p] > from {
			*s = since{}
			return fmt.Errorf("partition %d of %s begins at offset %d, and is verified up to %d: retention was "+
				"faster, and everything that is left is compared again", p, t.name, t.from[p], from)
		}
		t.from[p] = from
	}
	return nil
}
