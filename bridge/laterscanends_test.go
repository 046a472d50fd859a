package bridge

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/pause"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
)

// slowly is an account whose answers take their time. Container c0 begins with pages without a blob.
type slowly struct {
	inventory.Store
	page, containers time.Duration
	empty            int
}

func (s *slowly) List(ctx context.Context, q inventory.Query) (*inventory.Page, error) {
	if err := pause.For(ctx, s.page); err != nil {
		return nil, err
	}
	n, _ := strconv.Atoi(strings.TrimPrefix(q.Marker, "empty-"))
	if q.Container == "c0" && q.From == "" && n < s.empty {
		return &inventory.Page{Marker: fmt.Sprintf("empty-%d", n+1), Served: time.Unix(1_800_000_000, 0)}, nil
	}
	if n > 0 {
		q.Marker = ""
	}
	return s.Store.List(ctx, q)
}

func (s *slowly) Containers(ctx context.Context, marker string) (*inventory.Containers, error) {
	if err := pause.For(ctx, s.containers); err != nil {
		return nil, err
	}
	return s.Store.Containers(ctx, marker)
}

// A later scan ends also where a page takes longer than a round, where there are many pages without a blob, and where
// there are many pages of containers: a round continues where the one before ended.
func TestLaterScansEnd(t *testing.T) {
	t.Parallel()
	const round = 100 * time.Millisecond
	for name, s := range map[string]slowly{
		"pages take longer than a round":     {page: 3 * round / 2},
		"many pages have no blob":            {page: round / 4, empty: 12},
		"there are many pages of containers": {containers: round / 5},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 16, 3)
			c := broker(t)
			o := w.options(c)
			o.Pace.ScanRound, o.Pace.ScanRequests, o.Kafka.Leases = round, 1, 2
			if s.containers > 0 {
				w.store.Size = func(limit int) int { return min(limit, 1) }
			}
			account := s
			account.Store = w.store
			o.Feed.Inventory = &account
			w.change(20)
			w.publish(false)
			live(t, o)
			ask(t, o, offsets.Request{ID: "all", Time: time.Now()})
			began := time.Now()
			s := awaitState(t, o, "the scan is done", isDone("all"))
			t.Logf("%d rounds in %s", scanOf(s).Round, time.Since(began))
			if scanOf(s).Rows != int64(len(w.account.Blobs())) {
				t.Errorf("%d rows", scanOf(s).Rows)
			}
			w.compare(c)
		})
	}
}

// A round without an answer is followed by one of twice the length, and one with an answer by twice the time that it
// took. A lease that had no turn learns nothing.
func TestRoundLimit(t *testing.T) {
	const set = 10 * time.Second
	var r roundLimit
	at := func(d time.Duration) int64 { return int64(time.Hour + d) }
	for i, step := range []struct {
		scan              string
		limit             time.Duration
		began, took, ends time.Duration // took 0: there was no answer; began <0: there was no turn
	}{
		{"a", set, 0, 0, set},
		{"a", 2 * set, 0, 15 * time.Second, 2 * set},
		{"a", 30 * time.Second, 0, 2 * time.Second, 3 * set},
		{"a", set, -1, 0, set},
		{"a", set, 9 * time.Second, 0, set}, // it had no more than a second
		{"a", set, 0, 0, set},
		{"a", 20 * time.Second, 0, 0, 20 * time.Second},
		{"a", 40 * time.Second, 0, 0, 40 * time.Second},
		{"a", 80 * time.Second, 0, 0, 80 * time.Second},
		{"a", maxRound, 0, 0, maxRound},
		{"b", set, 0, 0, set},
	} {
		if got := r.limit(step.scan, set); got != step.limit {
			t.Fatalf("step %d: %s, want %s", i, got, step.limit)
		}
		var began, answered int64
		if step.began >= 0 {
			began = at(step.began)
		}
		if step.took > 0 {
			answered = at(step.began + step.took)
		}
		r.learn(began, answered, at(step.ends))
	}
}
