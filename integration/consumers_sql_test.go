//go:build integration

package integration

import (
	"encoding/json"
	"math"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/feedsim"
)

// sqlRow is a row of one of the scripts, and what the runner adds to it.
type sqlRow struct {
	Script, Kind     string
	Watermark        int64
	Path             string
	EventID          string    `json:"event_id"`
	Length           int64     `json:"content_length"`
	WindowStart      string    `json:"window_start"`
	Changes, Upserts int64     // windows
	TS               time.Time // asof
}

// compareHours is for the rows of windows.sql.
func compareHours(t *testing.T, rows []sqlRow, events []feedsim.Event) {
	t.Helper()
	changes, upserts := map[string]released{}, map[string]int64{} // by begin
	open := 0
	for _, row := range rows {
		if row.Watermark == math.MaxInt64 { // released by the end of the input, not by a marker
			open++
			continue
		}
		changes[row.WindowStart], upserts[row.WindowStart] = released{row.Changes, row.Watermark}, row.Upserts
	}
	wantChanges, wantUpserts := map[string]released{}, map[string]int64{}
	for _, e := range events {
		from := eventTime(e).Truncate(time.Hour)
		if mark, complete := coveredBy(from.Add(time.Hour)); complete {
			hour := from.Format("2006-01-02T15:04")
			wantChanges[hour] = released{wantChanges[hour].count + 1, mark}
			if !e.Delete {
				wantUpserts[hour]++
			}
		}
	}
	equal(t, changes, wantChanges)
	equal(t, upserts, wantUpserts)
	if open != 2 {
		t.Errorf("%d hours were not complete, want the two that the last marker does not cover", open)
	}
}

// state is the table that the rows of a changelog make: by path the event.
func state(rows []sqlRow) map[string]string {
	s := map[string]string{}
	for _, row := range rows {
		switch row.Kind {
		case "+I", "+U":
			s[row.Path] = row.EventID
		case "-D":
			delete(s, row.Path)
		}
	}
	return s
}

// download writes that somebody loads blobs: in the very millisecond of an event, just before it, and long after it. It
// returns which event made what each of them got.
func download(t *testing.T, topic string, events []feedsim.Event) map[string]string {
	t.Helper()
	want := map[string]string{}
	var probes []probe
	for i := 100; i < len(events)-100; i += 997 {
		at := eventTime(events[i]).Truncate(time.Millisecond)
		for _, at := range []time.Time{at, at.Add(-time.Millisecond), at.Add(20 * time.Minute)} {
			p := probe{events[i].Key, at}
			probes = append(probes, p)
			if id := asOf(events, p); id != "" {
				want[p.String()] = id
			}
		}
	}
	slices.SortFunc(probes, func(a, b probe) int { return a.at.Compare(b.at) })
	cl := client(t, shared.KafkaBrokers)
	for _, p := range probes {
		value, err := json.Marshal(map[string]string{"path": p.path, "ts": p.at.Format("2006-01-02T15:04:05.000Z")})
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return want
}
