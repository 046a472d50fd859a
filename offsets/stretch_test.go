package offsets

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"
	"time"

	"blobfeed/source"
)

// Whatever seeks do, to segments and to times, an event is in a stretch of what is delivered if and only if it was
// delivered, and its segment in one of what is skipped if seeks have left all of it out.
func TestStretches(t *testing.T) {
	begin := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	at := func(minute int) time.Time { return begin.Add(time.Duration(minute) * time.Minute) }
	text := func(minute int) string { return fmt.Sprintf("%d.0000000000", at(minute).UnixNano()) }
	hour := func(n int) source.Segment { return source.SegmentAt(at(60 * n)) }
	has := func(all []Stretch, n, minute int) bool {
		return slices.ContainsFunc(all, func(s Stretch) bool { return s.Has(hour(n)) && text(minute) >= s.From })
	}
	const hours = 40
	type event struct{ segment, minute int }
	for seed := range uint64(200) {
		random := rand.New(rand.NewPCG(seed, 0))
		next := random.IntN(hours) // to deliver
		f := &Frontier{Completed: source.Before(hour(next)), Since: source.Before(hour(next))}
		from, first, last := -100, hours, 0
		delivered, some := map[event]bool{}, map[int]bool{}
		for range random.IntN(12) {
			if random.IntN(2) == 0 {
				next, from = random.IntN(hours), -100
				after, start := source.Before(hour(next)), ""
				if random.IntN(2) == 0 {
					from = 60*next + 76 + random.IntN(60)
					after, start = source.SegmentAt(at(from-76)), text(from)
					next = (from-76)/60 + 1
				}
				f.Leap(after)
				f.Start = start
			}
			for range random.IntN(10) {
				for _, minute := range []int{-15, 10, 59, 74} {
					if minute += 60 * next; minute >= from {
						delivered[event{next, minute}] = true
					}
				}
				f.Completed, some[next] = hour(next), true
				first, last = min(first, next), max(last, next)
				next++
			}
			for n := range hours + 100 {
				for _, minute := range []int{60*n - 15, 60*n + 10, 60*n + 59, 60*n + 74} {
					if is := has(f.Delivered(), n, minute); is != delivered[event{n, minute}] {
						t.Fatalf("seed %d: of segment %d, minute %d is delivered: %t (%v)", seed, n, minute, is, f.Delivered())
					}
				}
				left := !some[n] && n > first && n < max(last, next)
				if is := slices.ContainsFunc(f.Skipped(), func(s Stretch) bool { return s.Has(hour(n)) }); is != left {
					t.Fatalf("seed %d: segment %d is skipped: %t, want %t (%v)", seed, n, is, left, f.Skipped())
				}
			}
		}
	}
}

// A frontier of many seeks stays small, and forgets what was delivered before the first of them.
func TestManyStretches(t *testing.T) {
	f := &Frontier{}
	for n := range 100 {
		f.Leap(source.SegmentAt(time.Date(2026, 1, 1, 2*n, 0, 0, 0, time.UTC)))
		f.Completed = source.SegmentAt(time.Date(2026, 1, 1, 2*n+1, 0, 0, 0, time.UTC))
	}
	if n := len(f.Earlier); n != mostEarlier || f.Delivered()[n-1].After != f.Earlier[n-1].After {
		t.Errorf("%d stretches", n)
	}
	if n := len(f.Skipped()); n != mostEarlier {
		t.Errorf("%d stretches are skipped", n)
	}
}
