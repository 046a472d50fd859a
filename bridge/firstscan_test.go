package bridge

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/offsets"
	"blobfeed/resolved"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// firstCoordinator returns a coordinator before the first frontier of a feed that has a segment for each hour of a day.
func firstCoordinator(t *testing.T, open ...bool) (*memory, *coordinator) {
	t.Helper()
	m := newMemory()
	feed, err := feedsim.New(m, feedsim.Spec{Shards: 1})
	must(t, err)
	for hour, open := range open {
		must(t, feed.Open(t.Context()), feed.Finalize(t.Context()))
		if open {
			m.replace("idx/segments/"+source.SegmentAt(hourOf(hour)).String()+"/meta.json", "Finalized", "Publishing")
		}
	}
	o, _ := options(t, broker(t), t.TempDir())
	o.Feed.Source, o.Feed.InitialScan, o.Once = source.New(m, source.Options{}), ScanYes, false
	o.Now = func() time.Time { return hourOf(100) }
	return m, &coordinator{t: &tenure{opts: &o, instance: &instance{opts: &o, history: history.New(o.Feed.Source, 0)},
		work:     t.Context(),
		findings: &findings{failed: make(chan struct{}, 1)}}, rules: newRules(&o, 1)}
}

// firstFrontier returns the frontier of a first start with a scan.
func (co *coordinator) firstFrontier(t *testing.T) *offsets.Frontier {
	t.Helper()
	end, err := co.t.instance.history.End(t.Context())
	must(t, err)
	return &co.rules.begins(&offsets.State{}, beginning{end: end, now: co.t.opts.Now()}).frontier
}

// hourOf returns when a segment of the feed begins.
func hourOf(hour int) time.Time { return time.Date(2026, 1, 1, hour, 0, 0, 0, time.UTC) }

// The feed is delivered from its first open segment on. The rows have the time that may be promised there, so that no
// event behind them is of before it.
func TestFirstScan(t *testing.T) {
	t.Parallel()
	slack := 15 * time.Minute
	at := func(hour int) source.Segment { return source.SegmentAt(hourOf(hour)) }
	long := make([]bool, 60) // longer than openSegments
	for name, c := range map[string]struct {
		feed             []bool // which are open
		begin, completed source.Segment
		updated          time.Time
	}{
		"the last is open": {[]bool{false, false, true}, at(2), source.Before(at(2)), hourOf(2).Add(-slack)},
		"two are open":     {[]bool{false, true, true}, at(1), source.Before(at(1)), hourOf(1).Add(-slack)},
		"none is open":     {[]bool{false, false}, source.Segment{}, at(1), hourOf(2).Add(-slack)},
		"there is none":    {nil, source.Segment{}, source.Segment{}, hourOf(99).Add(-resolved.Slack)},
		"one is open for long": {slices.Concat([]bool{true}, long[:48]), at(0), source.Before(at(0)),
			hourOf(0).Add(-slack)},
		"one was left open": {slices.Concat([]bool{true}, long), source.Segment{}, at(60),
			hourOf(61).Add(-slack)},
	} {
		_, k := firstCoordinator(t, c.feed...)
		f := k.firstFrontier(t)
		updated, err := envelope.ParseTimestamp(f.Scan.Updated)
		must(t, err)
		if f.Scan.Begin != c.begin || f.Completed != c.completed || updated.Wall != c.updated.UnixNano() {
			t.Errorf("%s: from %q, behind %q, rows of %s; want %q, %q, %s", name, f.Scan.Begin, f.Completed,
				time.Unix(0, updated.Wall).UTC(), c.begin, c.completed, c.updated)
		}
		if !f.Scan.Initial || !f.Scan.Lists() || f.Scan.Round != 1 {
			t.Errorf("%s: %+v", name, f.Scan)
		}
	}
}

// What an attempt has found is forgotten if retention removes it before the next attempt.
func TestFirstScanAfterAFailure(t *testing.T) {
	t.Parallel()
	m, k := firstCoordinator(t, false, false)
	m.onRead = func(name string) error {
		if strings.HasSuffix(name, "/0100/meta.json") {
			m.remove("idx/segments/2026")
			return errors.New("no route")
		}
		return nil
	}
	if _, err := k.t.instance.history.End(t.Context()); err == nil {
		t.Errorf("an attempt without a route: %v", err)
	}
	f := k.firstFrontier(t)
	if f.Completed != (source.Segment{}) || !f.Ends.IsZero() {
		t.Errorf("behind %q, which ends at %s", f.Completed, f.Ends)
	}
}

// Nobody depends on the number of containers, so a request without an answer does not hold up a scan.
func TestCountWithoutAnAnswer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := &account.Store{Account: filled(2, 1)}
		store.Before = func(ctx context.Context, _ string, _ inventory.Query) error {
			<-ctx.Done()
			return ctx.Err()
		}
		began := time.Now()
		count := inventory.Count(t.Context(), store, func(string) bool { return true })
		if took := time.Since(began); took > time.Minute || count != 0 {
			t.Errorf("%d containers after %s", count, took)
		}
	})
}

// A scan is requested of a feed that has no account: it ends at once, and the feed is delivered.
func TestScanWithoutAnAccount(t *testing.T) {
	t.Parallel()
	o, r := options(t, broker(t), realFeed)
	live(t, o)
	awaitState(t, o, "the first frontier", func(s *offsets.State) bool { return s.Frontier != nil })
	ask(t, o, offsets.Request{ID: "none", Time: time.Now()})
	s := awaitState(t, o, "it is over", isDone("none"))
	if n := r.failures(""); !scanOf(s).Cancelled || n > 0 {
		t.Errorf("%+v, %d failures", scanOf(s), n)
	}
}
