package change

import (
	"strings"
	"testing"
	"time"

	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source"
)

// A plan shows times as people write them. A timestamp that a time does not identify is shown, too.
func TestPlanShowsTimes(t *testing.T) {
	target, err := history.ParseTarget("2020-05-29T17:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	state := &offsets.State{Frontier: &offsets.Frontier{Resolved: "1590788700000000000.0000000000",
		Start: "1590700000000000000.0000000007"}}
	seek, reset := &Plan{Name: "b"}, &Plan{Name: "b"}
	if err := planSeek(state, target, when(target.String()), seek); err != nil {
		t.Fatal(err)
	}
	planReset(state, reset)
	for name, plan := range map[string]*Plan{"seek": seek, "reset": reset} {
		var b strings.Builder
		plan.Text(&b)
		text := strings.ReplaceAll(b.String(), "2020-05-28T21:06:40Z (1590700000000000000.0000000007)", "")
		if !strings.Contains(text, "2020-05-29T21:45:00Z") || strings.Contains(text, ".00000000") ||
			name == "seek" && !strings.Contains(text, "2020-05-29T17:00:00Z") {
			t.Errorf("%s: %s", name, b.String())
		}
	}
}

// A plan of a seek back tells what is repeated from what a former seek has skipped.
func TestPlanTellsOfSkippedEvents(t *testing.T) {
	at := func(text string) source.Segment {
		segment, err := source.ParseSegment(text)
		if err != nil {
			t.Fatal(err)
		}
		return segment
	}
	state := &offsets.State{
		Frontier: &offsets.Frontier{
			Since: at("2020/05/29/1800"), Completed: at("2020/05/29/2100"),
			Earlier: []offsets.Stretch{{To: at("2020/05/29/1500")}},
		},
		Cursors: []*offsets.Cursor{{Segment: at("2020/05/29/2100"), Event: at("2020/05/29/2100").Time().Add(time.Minute)}},
	}
	for to, tells := range map[string]bool{
		"earliest": true, "2020/05/29/1700": true, "2020/05/29/1800": true, "2020/05/29/1900": false,
	} {
		target, err := history.ParseTarget(to)
		if err != nil {
			t.Fatal(err)
		}
		plan, text := &Plan{Name: "b"}, strings.Builder{}
		if err := planSeek(state, target, to, plan); err != nil {
			t.Fatal(err)
		}
		plan.Text(&text)
		if !strings.Contains(text.String(), "Delivered events are repeated") ||
			strings.Contains(text.String(), "come for the first time") != tells {
			t.Errorf("to %s: %s", to, &text)
		}
	}
}
