package offsets

import (
	"math/rand/v2"
	"testing"
	"time"

	"blobfeed/source"
)

// Whatever seeks do, a segment is in a stretch of what is delivered if and only if it was delivered, and in one of what
// is skipped if seeks have left it out.
func TestStretches(t *testing.T) {
	hour := func(n int) source.Segment {
		return source.SegmentAt(time.Date(2026, 1, 1, n, 0, 0, 0, time.UTC))
	}
	within := func(all []Stretch, n int) bool {
		for i, s := range all {
			if i > 0 && s.After.Compare(all[i-1].To) <= 0 || s.To.Compare(s.After) <= 0 {
				t.Fatalf("not in order, or empty: %v", all)
			}
		}
		for _, s := range all {
			if hour(n).Compare(s.After) > 0 && hour(n).Compare(s.To) <= 0 {
				return true
			}
		}
		return false
	}
	const hours = 40
	for seed := range uint64(500) {
		random := rand.New(rand.NewPCG(seed, 0))
		at := random.IntN(hours) // the next to deliver
		f := &Frontier{Completed: source.Before(hour(at)), Since: source.Before(hour(at))}
		delivered, first, last := map[int]bool{}, hours, 0
		for range random.IntN(12) {
			if random.IntN(2) == 0 {
				at = random.IntN(hours)
				f.Leap(source.Before(hour(at)))
			}
			for range random.IntN(10) {
				f.Completed, delivered[at] = hour(at), true
				first, last = min(first, at), max(last, at)
				at++
			}
			for n := range hours + 100 {
				if is := within(f.Delivered(), n); is != delivered[n] {
					t.Fatalf("seed %d: segment %d is delivered: %t, want %t (%v)", seed, n, is, delivered[n], f.Delivered())
				}
				left := !delivered[n] && n > first && n < max(last, at)
				if is := within(f.Skipped(), n); is != left {
					t.Fatalf("seed %d: segment %d is skipped: %t, want %t (%v)", seed, n, is, left, f.Skipped())
				}
			}
		}
	}
}

// A frontier of many seeks stays small, and forgets what the oldest one has skipped.
func TestManyStretches(t *testing.T) {
	f := &Frontier{}
	for n := range 100 {
		f.Leap(source.SegmentAt(time.Date(2026, 1, 1, 2*n, 0, 0, 0, time.UTC)))
		f.Completed = source.SegmentAt(time.Date(2026, 1, 1, 2*n+1, 0, 0, 0, time.UTC))
	}
	all := f.Delivered()
	if oldest := segment(t, "2026/01/01/0000"); len(f.Earlier) != mostEarlier || all[0].After != oldest {
		t.Errorf("%d stretches, the first is %v", len(f.Earlier), all[0])
	}
	if n := len(f.Skipped()); n != mostEarlier {
		t.Errorf("%d stretches are skipped", n)
	}
}
