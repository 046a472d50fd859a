package bridge

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
	"blobfeed/verify"
)

// away is a bridge that has delivered what its feed held, and is stopped while that goes on.
type away struct {
	*feedsim.Feed
	Options
	dir    string
	broker *kfake.Cluster
}

func delivered(t *testing.T, events int) *away {
	t.Helper()
	a := &away{dir: t.TempDir(), broker: broker(t)}
	a.Options, _ = options(t, a.broker, a.dir)
	var err error
	a.Feed, err = feedsim.New(feedsim.Dir(a.dir), feedsim.Spec{EventsPerSegment: 100})
	must(t, err)
	must(t, a.Open(t.Context()), a.Append(t.Context(), events, nil), runOnce(t, a.Options))
	return a
}

// remove is what retention does.
func (a *away) remove(t *testing.T, names ...string) {
	t.Helper()
	for _, name := range names {
		must(t, os.RemoveAll(filepath.Join(a.dir, name)))
	}
}

// resume returns what the bridge says of the loss, and lets it go on behind it. Gaps are those that markers tell of.
func (a *away) resume(t *testing.T) (gap *history.GapError, data, markers int, gaps []string) {
	t.Helper()
	if err := runOnce(t, a.Options); !errors.As(err, &gap) {
		t.Fatalf("err = %v", err)
	}
	a.Options.Feed.SkipGaps = true
	must(t, runOnce(t, a.Options))
	data, markers = consume(t, a.broker, append(promises(), told(&gaps))...)
	return gap, data, markers, gaps
}

// told collects the gaps that markers tell of.
func told(gaps *[]string) noted {
	return func(r verify.Record) {
		if gap := r.Header("gap"); r.Key == nil && gap != nil {
			*gaps = append(*gaps, string(gap))
		}
	}
}

// Retention removes the segment that was being read. That stops the bridge, which names both ends; or it goes on at the
// oldest segment, as it is told, and the next marker tells consumers.
func TestHistoryLost(t *testing.T) {
	t.Parallel()
	ctx, a := t.Context(), delivered(t, 50)
	// The bridge is away for a long time.
	must(t, a.Next(ctx), a.Append(ctx, 30, nil), a.Next(ctx), a.Append(ctx, 20, nil), a.Finalize(ctx))
	a.remove(t, "idx/segments/2026/01/01/0000", "log/00/2026/01/01/0000", "idx/segments/2026/01/01/0100",
		"log/00/2026/01/01/0100")
	gap, data, markers, gaps := a.resume(t)
	if gap.At.String() != "2026/01/01/0000" || gap.Oldest.String() != "2026/01/01/0200" {
		t.Errorf("%v", gap)
	}
	if data != 70 || markers != 2*partitions || len(gaps) != partitions ||
		gaps[0] != "2026/01/01/0000 2026/01/01/0200" {
		t.Errorf("%d records, %d markers, gaps %q", data, markers, gaps)
	}
}

// Everything was delivered, and while nobody looked, retention removed the segment after that, unread.
func TestHistoryLostAfterTheLast(t *testing.T) {
	t.Parallel()
	ctx, a := t.Context(), delivered(t, 50)
	must(t, a.Finalize(ctx), runOnce(t, a.Options))
	must(t, a.Open(ctx), a.Append(ctx, 30, nil), a.Next(ctx), a.Append(ctx, 20, nil))
	a.remove(t, "idx/segments/2026/01/01/0000", "log/00/2026/01/01/0000", "idx/segments/2026/01/01/0100",
		"log/00/2026/01/01/0100")
	gap, data, _, _ := a.resume(t)
	if gap.At.String() != "2026/01/01/0000" || gap.Oldest.String() != "2026/01/01/0200" || data != 70 {
		t.Errorf("%v; %d records", gap, data)
	}
}

// The same with an end before the oldest segment that is left: the end is not reached, but lost.
func TestHistoryLostBeforeTheEnd(t *testing.T) {
	t.Parallel()
	ctx, a := t.Context(), delivered(t, 50)
	must(t, a.Finalize(ctx), runOnce(t, a.Options))
	must(t, a.Open(ctx), a.Append(ctx, 30, nil), a.Next(ctx), a.Append(ctx, 20, nil))
	for _, hour := range []string{"0000", "0100"} {
		a.remove(t, "idx/segments/2026/01/01/"+hour, "log/00/2026/01/01/"+hour)
	}
	a.Options.Feed.End = envelope.Timestamp{Wall: time.Date(2026, 1, 1, 1, 30, 0, 0, time.UTC).UnixNano()}
	gap, data, _, gaps := a.resume(t)
	if gap.Oldest.String() != "2026/01/01/0200" || data != 50 || len(gaps) != partitions {
		t.Errorf("%v; %d records, gaps %q", gap, data, gaps)
	}
}

// Retention removes a chunk that was not read: that is lost history, too, also if the manifest is still there.
func TestChunkLost(t *testing.T) {
	t.Parallel()
	ctx, a := t.Context(), delivered(t, 20)
	a.Roll()
	must(t, a.Append(ctx, 30, nil), a.Finalize(ctx))
	a.remove(t, "log/00/2026/01/01/0000/00000.avro")
	gap, data, markers, gaps := a.resume(t)
	if !strings.Contains(gap.Error(), "00000.avro") || gap.At.String() != "2026/01/01/0000" {
		t.Errorf("%v", gap)
	}
	if data != 50 || markers != partitions || len(gaps) != partitions || gaps[0] != "2026/01/01/0000 2026/01/01/0000" {
		t.Errorf("%d records, %d markers, gaps %q", data, markers, gaps)
	}
}

// How much of the feed is older than the bridge's position is what retention may still remove without loss.
func TestHeadroom(t *testing.T) {
	feed := writeFeed(t, feedsim.Spec{Segments: 3, EventsPerSegment: 10, LeaveOpen: true})
	o, r := options(t, broker(t), feed)
	must(t, runOnce(t, o))
	for len(r.headroom) > 0 {
		<-r.headroom // of the run before, on its way
	}
	defer run(t, o)()
	if older := <-r.headroom; older != 2*time.Hour {
		t.Errorf("headroom is %s", older)
	}
}

// What retention has removed is a gap only if it was to be read.
func TestGapIsWhatWasToBeRead(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	for name, c := range map[string]struct {
		remove []string // before the second run
		lost   string   // "": no gap
		data   int
	}{
		"the segment that was read":       {[]string{"2026/01/01/0000"}, "2026/01/01/0000", 10},
		"that one and those behind":       {[]string{"2026/01/01/0000", "2026/01/01/0100"}, "2026/01/01/0000", 10},
		"nothing":                         {nil, "", 60},
		"one in the middle was not there": {[]string{"2026/01/01/0100"}, "", 40},
	} {
		t.Run(name, func(t *testing.T) {
			m, live := simulated(t, feedsim.Spec{})
			must(t, live.Append(ctx, 10, nil))
			k := broker(t)
			o, _ := over(t, k, m)
			must(t, runOnce(t, o))
			must(t, live.Next(ctx), live.Append(ctx, 20, nil))
			must(t, live.Next(ctx), live.Append(ctx, 30, nil), live.Finalize(ctx))
			for _, seg := range c.remove {
				m.remove("idx/segments/" + seg)
				m.remove("log/00/" + seg)
			}
			err := runOnce(t, o)
			var gap *history.GapError
			if c.lost == "" {
				must(t, err)
			} else if !errors.As(err, &gap) || gap.At.String() != c.lost || gap.Oldest.Compare(gap.At) <= 0 ||
				!strings.Contains(err.Error(), gap.Oldest.String()) || !strings.Contains(err.Error(), c.lost) {
				t.Fatalf("err = %v", err)
			}
			if data, _ := consume(t, k, promises()...); data != c.data {
				t.Errorf("%d records, want %d", data, c.data)
			}
			if c.lost == "" {
				return
			}
			o.Feed.SkipGaps = true
			must(t, runOnce(t, o))
			want := map[int]int{1: 10 + 20 + 30, 2: 10 + 30}[len(c.remove)]
			var gaps []string
			if data, _ := consume(t, k, append(promises(), told(&gaps))...); data != want || len(gaps) != partitions {
				t.Errorf("told to go on: %d records, want %d, gaps %q", data, want, gaps)
			}
		})
	}
	// A manifest that is missing for a moment, in a feed that begins before it, is trouble.
	m, live := simulated(t, feedsim.Spec{})
	must(t, live.Append(ctx, 10, nil), live.Next(ctx), live.Append(ctx, 20, nil), live.Finalize(ctx))
	left := 2
	var mu sync.Mutex
	m.onRead = func(name string) error {
		mu.Lock()
		defer mu.Unlock()
		if strings.Contains(name, "/0100/meta.json") && left > 0 {
			left--
			return source.ErrNotFound
		}
		return nil
	}
	k := broker(t)
	o, r := over(t, k, m)
	o.Pace.BundleBytes = 0 // reading ahead says nothing of trouble: it leaves that to the leases
	must(t, runOnce(t, o))
	if data, markers := consume(t, k, promises()...); data != 30 || markers != 2*partitions || len(r.failed) == 0 {
		t.Errorf("%d records, %d markers, %q", data, markers, r.failed)
	}
}

// The newest segment is one that the feed has. An idle account may be read days further than that.
func TestNewestSegmentIsOfTheFeed(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/0000", "Finalized", 60, map[int][]happened{0: {{"a", "2026-01-01T00:10:00Z", "c/b"}}})
	m.segment("2026/01/01/0100", "Publishing", 60, nil)
	m.blobs["meta/segments.json"] = []byte(`{"lastConsumable":"2026-01-04T01:00:00.000Z"}`)
	o, r := over(t, broker(t), m)
	looked := make(newestSeen, 1)
	o.Observer = Observers{o.Observer, looked}
	stop := run(t, o)
	defer stop()
	r.await(t, func(c Commit) bool { return c.Read == 1 })
	want := time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC)
	for got := range looked {
		if got.Equal(want) {
			return
		}
		if got.After(want) {
			t.Fatalf("the newest segment is said to be of %s", got)
		}
	}
}

type newestSeen chan time.Time

func (n newestSeen) History(h History) {
	select {
	case n <- h.Newest:
	default:
	}
}
