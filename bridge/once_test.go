package bridge

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Two instances with --once: each ends when all that the feed holds is committed, whoever has the leases, and not
// before.
func TestOnceBesideOnce(t *testing.T) {
	m, live := simulated(t, feedsim.Spec{Shards: 6})
	must(t, live.Append(t.Context(), 300, nil))
	c := broker(t)
	var runs sync.WaitGroup
	for _, name := range []string{"one", "two", "three"} {
		o, _ := over(t, c, m)
		o.Instance = name
		runs.Go(func() {
			if err := runOnce(t, o); err != nil {
				t.Error(err)
			}
			ends, err := (&topics.Admin{Client: fakebroker.Client(t, c)}).Ends(t.Context(), o.offsetsTopic())
			if err != nil {
				t.Error(err)
			}
			s := awaitState(t, o, "the state is read", func(s *offsets.State) bool { return s.Reached(ends) })
			sh := New(o).instance
			sh.leases = int(o.Kafka.Leases)
			if all, err := sh.drained(t.Context(), s); err != nil || !all {
				t.Errorf("%s ended, and all is delivered: %t, %v", name, all, err)
			}
		})
	}
	runs.Wait()
	if data, _ := consume(t, c, promises()...); data != 300 {
		t.Errorf("%d records", data)
	}
}

// Only what is committed counts for --once, in a state that is not of the past.
func TestDeliveredAllByCommittedState(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/0000", "Publishing", 60,
		map[int][]happened{0: {{"1", "2026-01-01T00:10:00Z", "a"}}, 1: {{"2", "2026-01-01T00:10:00Z", "b"}}})
	c := broker(t)
	o, _ := over(t, c, m)
	must(t, runOnce(t, o))
	all := awaitState(t, o, "all is delivered", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Cursors[0] != nil && s.Cursors[1] != nil
	})
	delivered := func(what string, want bool, change func(*instance, *offsets.State)) {
		t.Helper()
		sh, s := New(o).instance, *all
		sh.leases = int(o.Kafka.Leases)
		s.Cursors = append([]*offsets.Cursor{}, all.Cursors...)
		change(sh, &s)
		if got, err := sh.deliveredAll(t.Context(), &s); err != nil || got != want {
			t.Errorf("%s: %t, %v", what, got, err)
		}
	}
	delivered("as it is", true, func(*instance, *offsets.State) {})
	delivered("a lease has committed nothing", false, func(_ *instance, s *offsets.State) { s.Cursors[1] = nil })
	delivered("the view is not at the end", false, func(sh *instance, _ *offsets.State) { sh.start = 1 << 40 })
	delivered("nor at that of another partition", false,
		func(sh *instance, _ *offsets.State) { sh.ends = []int64{0, 1 << 40, 0, 0} })
	m.segment("2026/01/01/0100", "Publishing", 60, nil)
	delivered("a later segment waits for the open one", true, func(*instance, *offsets.State) {})
	m.replace("idx/segments/2026/01/01/0000/meta.json", "Publishing", "Finalized")
	delivered("the open one is finalized, and the later one waits for nothing", false,
		func(*instance, *offsets.State) {})
}

// The last run that leaves with all delivered says so, also if there was nothing new. Another
// instance that comes voids it.
func TestOnceReports(t *testing.T) {
	t.Parallel()
	var refuses atomic.Bool
	c := broker(t)
	o, _ := options(t, c, realFeed)
	reported := func(want bool) *offsets.Delivered {
		t.Helper()
		s := awaitState(t, o, "the state is read", func(s *offsets.State) bool { return s.Frontier != nil })
		if got := s.Delivered != nil; got != want {
			t.Errorf("reported %t, want %t: %+v", got, want, s.Delivered)
		}
		return s.Delivered
	}
	must(t, runOnce(t, o))
	first := reported(true)
	c.ControlKey(int16(kmsg.JoinGroup), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl() // the next run ends before it has leases
		resp := req.ResponseKind().(*kmsg.JoinGroupResponse)
		resp.ErrorCode = kerr.CoordinatorNotAvailable.Code
		return resp, nil, refuses.Load()
	})
	refuses.Store(true)
	must(t, runOnce(t, o))
	refuses.Store(false)
	if again := reported(true); !again.Time.After(first.Time) {
		t.Errorf("%s, and before it %s", again.Time, first.Time)
	}
	stays := o
	stays.Instance = "stays"
	end := run(t, stays)
	awaitState(t, o, "it has lease 0", func(s *offsets.State) bool { return s.Owners[0] == "stays" })
	must(t, runOnce(t, o))
	end()
	reported(false)
}

// A segment that is open although later ones exist, as in a feed whose service is late: the run ends when it is
// delivered, says what waits, and the next run delivers the rest.
func TestOnceBehindAnOpenSegment(t *testing.T) {
	m, feed := simulated(t, feedsim.Spec{Shards: 2})
	for range 3 {
		must(t, feed.Append(t.Context(), 20, nil), feed.Next(t.Context()))
	}
	const open = "idx/segments/2026/01/01/0100/meta.json"
	m.replace(open, "Finalized", "Publishing")
	c := broker(t)
	o, _ := over(t, c, m)
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	must(t, runOnce(t, o))
	if data, _ := consume(t, c, promises()...); data != 40 {
		t.Errorf("%d records before the open segment is finalized", data)
	}
	if !strings.Contains(log.String(), "open=2026/01/01/0100 later=2") {
		t.Errorf("it does not say what waits: %s", &log)
	}
	m.replace(open, "Publishing", "Finalized")
	must(t, runOnce(t, o))
	if data, _ := consume(t, c, promises()...); data != 60 {
		t.Errorf("%d records", data)
	}
}

// An attempt that worked for long before it failed is not the last failure of a row.
func TestOnceGivesUpOnlyInARow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, broken := 0, errors.New("broken")
		retries := (&Options{Once: true}).retries(func(error) {})
		err := retries.Do(t.Context(), func(context.Context) error {
			switch n++; n {
			case onceAttempts:
				time.Sleep(time.Hour)
			case onceAttempts + 1:
				return nil
			}
			return broken
		})
		if err != nil {
			t.Errorf("attempt %d, behind one of an hour: %v", n+1, err)
		}
		n = 0
		err = retries.Do(t.Context(), func(context.Context) error { n++; return broken })
		if !errors.Is(err, broken) || n != onceAttempts {
			t.Errorf("after %d attempts: %v", n, err)
		}
	})
}

// A segment that is open for long after its end, although later ones exist: the state says since when, and forgets it
// when the segment is finalized. The last segment of an idle account is no such thing.
func TestOverdueSegment(t *testing.T) {
	m, feed := simulated(t, feedsim.Spec{Shards: 2})
	must(t, feed.Append(t.Context(), 20, nil), feed.Next(t.Context()), feed.Append(t.Context(), 20, nil))
	const open = "idx/segments/2026/01/01/0000/meta.json"
	m.replace(open, "Finalized", "Publishing")
	o, _ := over(t, broker(t), m)
	o.Now = func() time.Time { return hourOf(3) }
	live(t, o)
	awaitState(t, o, "the open segment is overdue", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Frontier.OpenSince.Equal(hourOf(1))
	})
	m.replace(open, "Publishing", "Finalized")
	s := awaitState(t, o, "the last segment is drained", func(s *offsets.State) bool {
		read := int64(0)
		for _, c := range s.Cursors {
			if c != nil {
				read += c.Counts.Read
			}
		}
		return read == 40
	})
	if !s.Frontier.OpenSince.IsZero() || s.Frontier.Current != source.SegmentAt(hourOf(1)) {
		t.Errorf("segment %s, open since %s", s.Frontier.Current, s.Frontier.OpenSince)
	}
}
