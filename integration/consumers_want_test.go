//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim"
)

// released is the count of a window, and the watermark that released it.
type released struct{ count, watermark int64 }

// coveredBy returns the watermark that releases a window with this end, which is a millisecond below the first marker
// at or past it. There is none if the feed does not get there.
func coveredBy(end time.Time) (watermark int64, complete bool) {
	for i := range jobFeed.Segments - 1 { // the last one is open
		mark := jobFeed.Start.Add(time.Duration(i+1)*time.Hour - 15*time.Minute)
		if !mark.Before(end) {
			return mark.UnixMilli() - 1, true
		}
	}
	return 0, false
}

func eventTime(e feedsim.Event) time.Time {
	at, err := time.Parse(time.RFC3339Nano, e.EventTime)
	if err != nil {
		panic(err)
	}
	return at
}

// latest returns the last event of each blob that exists, by path.
func latest(events []feedsim.Event) map[string]string {
	ids := map[string]string{}
	for _, e := range events {
		if ids[e.Key] = e.ID; e.Delete {
			delete(ids, e.Key)
		}
	}
	return ids
}

// probe asks for the state of a blob at a time.
type probe struct {
	path string
	at   time.Time
}

func (p probe) String() string { return fmt.Sprintf("%s at %d", p.path, p.at.UnixMilli()) }

// asOf returns the event that made the blob what it was, or "" if it did not exist.
func asOf(events []feedsim.Event, p probe) (id string) {
	for _, e := range events {
		if e.Key == p.path && !eventTime(e).Truncate(time.Millisecond).After(p.at) {
			if id = e.ID; e.Delete {
				id = ""
			}
		}
	}
	return id
}

// equal compares, and shows the first differences.
func equal[K comparable, V comparable](t *testing.T, got, want map[K]V) {
	t.Helper()
	if len(want) == 0 {
		t.Fatal("nothing is expected: the feed is too small")
	}
	t.Logf("%d results, %d expected", len(got), len(want))
	var wrong []string
	for k, w := range want {
		if g, ok := got[k]; !ok || g != w {
			wrong = append(wrong, fmt.Sprintf("%v: got %v (%t), want %v", k, g, ok, w))
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			wrong = append(wrong, fmt.Sprintf("%v: got %v, want nothing", k, g))
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		t.Errorf("%d results are wrong, such as\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
}
