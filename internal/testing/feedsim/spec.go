package feedsim

import (
	"cmp"
	"errors"
	"fmt"
	"time"
)

// Spec says what to write. Zero fields have the defaults that are noted.
type Spec struct {
	Seed     uint64
	Account  string        // simaccount
	Start    time.Time     // begin of the first segment; 2026-01-01
	Interval time.Duration // of a segment, in whole minutes, since the names of segments have no seconds; 1 h

	Segments         int                   // 1
	Shards           int                   // of each segment, at most 100; 1
	ShardsOf         func(segment int) int // instead of Shards, if they differ by segment; segments count from 0
	ChunksPerShard   int                   // 1; a shard that gets few events may have less
	EventsPerSegment int                   // 1000; for a Feed, only the distance of event times
	BlockEvents      int                   // events of a block; 100
	Versions         []int                 // schema versions, of 1, 4, 5 and 6, in turn by chunk; 5
	Deflate          bool                  // codec deflate; no real file has it, readers should read it

	Blobs      int      // 1000
	HotShare   float64  // of the events that go to ten blobs
	Containers []string // photos, backups, $web
	Mix        Mix      // DefaultMix

	Now func() time.Time // when events happen, within the open segment; without, they are spread evenly over it

	LeaveOpen   bool // Write leaves the last segment Publishing
	EmptyEvery  int  // every so many segments, one lists no shards at all
	EmptyShards int  // so many shards of each segment, the last ones, are listed but hold nothing
	// every so many events, one is in the log a second time, behind itself: a recorded account has that
	TwiceEvery int
	// so many shards of each segment, at most all but one, wait for Reveal: not listed, their events not in the sink
	LateShards       int
	HeaderOnlyChunks bool // each shard ends with a chunk that has only a header
	// each append to a chunk is cut in two at a random byte, so that a reader can see half a block
	TornAppends bool
}

// defaulted returns the spec without zero fields.
func (s Spec) defaulted() Spec {
	s.Account = cmp.Or(s.Account, "simaccount")
	if s.Start.IsZero() {
		s.Start = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	s.Start = s.Start.UTC().Truncate(time.Minute)
	s.Interval = cmp.Or(s.Interval, time.Hour)
	s.Segments, s.Shards, s.ChunksPerShard = cmp.Or(s.Segments, 1), cmp.Or(s.Shards, 1), cmp.Or(s.ChunksPerShard, 1)
	s.EventsPerSegment, s.BlockEvents, s.Blobs = cmp.Or(s.EventsPerSegment, 1000), cmp.Or(s.BlockEvents,
		100), cmp.Or(s.Blobs, 1000)
	if len(s.Versions) == 0 {
		s.Versions = []int{5}
	}
	if len(s.Containers) == 0 {
		s.Containers = []string{"photos", "backups", "$web"}
	}
	if s.Mix == (Mix{}) {
		s.Mix = DefaultMix
	}
	return s
}

// validate returns all that is wrong.
func (s *Spec) validate() error {
	var errs []error
	check := func(ok bool, format string, args ...any) {
		if !ok {
			errs = append(errs, fmt.Errorf(format, args...))
		}
	}
	check(s.Interval > 0 && s.Interval%time.Minute == 0, "interval %s is not in whole minutes", s.Interval)
	check(s.Shards > 0 && s.Shards <= 100, "%d shards: want 1 to 100", s.Shards)
	check(s.EmptyShards >= 0, "%d empty shards", s.EmptyShards)
	check(s.LateShards >= 0, "%d late shards", s.LateShards)
	check(s.Segments > 0 && s.ChunksPerShard > 0 && s.EventsPerSegment > 0 && s.BlockEvents > 0 && s.Blobs > 0,
		"a count is negative")
	check(s.HotShare >= 0 && s.HotShare <= 1, "hot share %g: want 0 to 1", s.HotShare)
	check(s.Mix.sum() > 0, "the mix of events is empty")
	if s.Interval > 0 {
		check(int64(s.EventsPerSegment) <= newClock(s.Interval, 1).limit, "%d events do not fit into %s",
			s.EventsPerSegment, s.Interval)
	}
	return errors.Join(errs...)
}

// shards returns how many shards a segment lists, and how many of them get events.
func (s *Spec) shards(segment int) (listed, used int, err error) {
	if s.EmptyEvery > 0 && (segment+1)%s.EmptyEvery == 0 {
		return 0, 0, nil
	}
	listed = s.Shards
	if s.ShardsOf != nil {
		listed = s.ShardsOf(segment)
	}
	used = listed - s.EmptyShards
	if listed > 100 || used < 1 {
		return 0, 0, fmt.Errorf("segment %d has %d shards, %d of them empty", segment, listed, s.EmptyShards)
	}
	return listed, used, nil
}
