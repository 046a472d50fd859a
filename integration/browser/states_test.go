//go:build integration

package browser

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/ops"
	"blobfeed/internal/plain"
)

// view is what a browser shows of a state.
type view struct {
	State, Name, Verdict, Headline, Detail, All, Title, Said string

	Overflow, Broken []string
	Ribbon, Newest   string
	Records          int
	Key, Current     string    // of the ribbon
	Bar              []float64 // where it begins and ends

	Contrast struct {
		Ratio float64
		Text  string
	}
	Names          []struct{ What, Name, Now string }
	Samples, Cells int
	Partitions     int
	Wide           float64
}

// wanted is what the page says in each state.
var wanted = map[string]struct{ verdict, headline, detail string }{
	"start":       {"starting", "Starting", "the brokers have not answered yet"},
	"catching-up": {"catching_up", "Catching up", "segment 44 of 48, 90 %, 150,000 events/s, about 1m"},
	"bundles":     {"catching_up", "Catching up", "segment 2,901 of 9,500, 30 %, 60,000 events/s, about 11m0s left"},
	"live":        {"up_to_date", "Up to date", "last event 1m32s ago\u00a0· resolved up to 2026-01-31 11:45:00 UTC"},
	"sweeping":    {"up_to_date", "Up to date", "sweeping the topics: partition 1 of 6, 0 %"},
	"failing":     {"degraded", "Degraded", "the storage service has answered 403 Forbidden for 1m40s (and 2 more)"},
	"kafka-down": {
		"degraded", "Degraded",
		"Kafka has not answered for 44s: dial tcp 10.0.0.4:9092: connect: connection refused (and 1 more)",
	},
}

// pictures are those of docs/images, with the file that each is made as.
var pictures = map[string]string{
	"status-light.png": "status-live-desk.png",
	"status-dark.png":  "status-live-dark.png",
	"status-phone.png": "status-live-phone.png",
	"status-start.png": "status-start-desk.png", "status-catching-up.png": "status-catching-up-desk.png",
	"status-failing.png": "status-failing-desk.png", "status-kafka-down.png": "status-kafka-down-desk.png",
}

// The status page in five states at three widths, by day and by night, by keyboard and for a screen reader. It makes
// the pictures of docs: SCREENSHOTS=$PWD/docs/images.
func TestPageStates(t *testing.T) {
	var last *scene
	mux := http.NewServeMux()
	for _, name := range sceneStates {
		last = sceneOf(name)
		mux.Handle("/"+name+"/", http.StripPrefix("/"+name, ops.Handler(last.Monitor, http.NotFoundHandler())))
	}
	mux.Handle("/fleet/", http.StripPrefix("/fleet", ops.FleetHandler(sceneFleet())))
	server := httptest.NewServer(mux)
	defer server.Close()
	dir := t.TempDir()
	spans := []float64{0, 1, 59.4, 59.6, 60, 93, 3599, 3599.6, 3600, 3659, 7260, 86399, 172799, 172800, 2374 * 86400.5}
	times := strings.ReplaceAll(fmt.Sprint(spans), " ", ",")
	var seen struct {
		Views         []view
		Focus         []struct{ What, Outline string }
		Target        float64
		Amber, Silent float64

		Paused, Resumed, Problems, Foreign []string

		Fleet []struct {
			Name, All, Labels string
			Remedy            float64
			Overflow, Broken  []string
		}
		Spans   []string
		Breaks  []any
		Nowhere string // the current segment of a bridge at a place that the feed does not have
	}
	err := Run(".", "states.cjs", &seen, map[string]func(){
		"fail": func() { last.Failed(-1, errors.New("no route to host")) },
		"stop": server.Close,
	}, append([]string{server.URL + "/", dir, times}, sceneStates...)...)
	if err != nil {
		t.Fatal(err)
	}
	for i, s := range spans {
		if want := plain.Span(time.Duration(s * float64(time.Second))); i >= len(seen.Spans) || seen.Spans[i] != want {
			t.Errorf("%v s are %q, elsewhere %q", s, seen.Spans, want)
		}
	}

	if strings.Contains(seen.Nowhere, "waits for") || seen.Nowhere == "" {
		t.Errorf("where nothing is delivered, the current segment is %q", seen.Nowhere)
	}
	if len(seen.Breaks) > 0 {
		t.Errorf("an address, a flag or a name breaks at widths of %v", seen.Breaks)
	}
	for _, v := range seen.Views {
		at := v.State + ", " + v.Name
		if v.Name != "gone" {
			if want := wanted[v.State]; v.Verdict != want.verdict || v.Headline != want.headline ||
				!strings.HasPrefix(v.Detail, want.detail) {
				t.Errorf("%s: %s, %q, %q", at, v.Verdict, v.Headline, v.Detail)
			}
		} else if v.Verdict != "silent" || v.Headline != "No answer" ||
			!strings.HasPrefix(v.Detail, "This instance has not answered since ") {
			t.Errorf("%s: %s, %q, %q", at, v.Verdict, v.Headline, v.Detail)
		}
		if len(v.Overflow) > 0 {
			t.Errorf("%s: wider than the page: %q", at, v.Overflow)
		}
		if len(v.Broken) > 0 || strings.Contains(v.All, " ·") { // a line must not begin with the dot of a list
			t.Errorf("%s: broken words: %q", at, v.Broken)
		}
		if len(v.Bar) != 2 || v.Bar[0] > 1 || v.Bar[1] < 359.5 {
			t.Errorf("%s: the bar of verdicts is from %v of 360", at, v.Bar)
		}
		if fails := v.State == "failing" || v.State == "kafka-down"; fails != strings.Contains(v.Key, "1 failing") {
			t.Errorf("%s: the key of the ribbon is %q", at, v.Key)
		}
		if skips := v.State == "kafka-down"; skips != strings.Contains(v.Key, "3 skipped by a seek") ||
			skips != strings.Contains(v.Key, "1 left out in part") ||
			skips != strings.Contains(v.All, "after 2026/01/31/0100, before 2026-01-31 05:30") {
			t.Errorf("%s: the key of the ribbon is %q, with skipped segments: %t", at, v.Key, skips)
		}
		if v.Current == "" && v.State != "start" { // what is below would jump
			t.Errorf("%s: nothing is said of the current segment", at)
		}
		// 2026-01-31 12:00 and 2026/01/31/1200 (1h0m ahead)
		segment := strings.NewReplacer("-", "/", " ", "/", ":", "").Replace(v.Ribbon)
		if newest, _, _ := strings.Cut(v.Newest, " "); newest != segment || segment == "" {
			t.Errorf("%s: the ribbon ends at %q, and the newest segment is %q", at, v.Ribbon, v.Newest)
		}
		if want := 8; v.Records != want && (v.State != "start" || v.Records != 0) ||
			v.State == "start" && !strings.Contains(v.All, "committed no record since its start") {
			t.Errorf("%s: %d records", at, v.Records)
		}
		if v.Contrast.Ratio < 4.5 {
			t.Errorf("%s: contrast %.1f of %q", at, v.Contrast.Ratio, v.Contrast.Text)
		}
		if !strings.HasPrefix(v.Said, v.Headline+". ") || !strings.HasPrefix(v.Title, v.Headline+": ") {
			t.Errorf("%s: a screen reader hears %q, the title is %q", at, v.Said, v.Title)
		}
		progress := false
		for _, n := range v.Names {
			progress = progress || n.What == "progress" && (n.Now == "90" || n.Now == "30")
			if n.Name == "" {
				t.Errorf("%s: %s has no name for a screen reader", at, n.What)
			}
		}
		if progress != (v.Verdict == "catching_up") {
			t.Errorf("%s: a progress bar: %v", at, progress)
		}
		// A page that is just opened has the last hour: the server keeps it.
		samples, cells := 360, sceneLeases
		switch v.State {
		case "start":
			samples, cells = 0, 0
		case "catching-up":
			samples = 73
		}
		if want := 6; v.State != "start" && v.Partitions != want {
			t.Errorf("%s: %d partitions, want %d", at, v.Partitions, want)
		}
		if v.Name == "phone" && v.Wide < 0.8 {
			t.Errorf("%s: four bars take %.2f of the card", at, v.Wide)
		}
		if v.Samples < samples || v.Cells != cells {
			t.Errorf("%s: %d samples, %d leases, want %d and %d", at, v.Samples, v.Cells, samples, cells)
		}
		for _, mannered := range []string{"frontier", "undefined", "NaN", "null", "[object", "everything is delivered"} {
			if strings.Contains(v.All, mannered) {
				t.Errorf("%s: the page says %q", at, mannered)
			}
		}
		if v.Name == "open" && v.State == "failing" && !strings.Contains(v.All, "<b>This request") {
			t.Errorf("%s: the end of a long error is not there", at)
		}
	}
	for _, v := range seen.Fleet {
		if len(v.Overflow)+len(v.Broken) > 0 || v.Remedy < 150 || !strings.Contains(v.All, "of 3 degraded") ||
			!strings.Contains(v.All, ", 2 unknown") {
			t.Errorf("the list, %s: wider than the page: %q; broken words: %q; a remedy is %.0f wide; it says %s", v.Name,
				v.Overflow, v.Broken, v.Remedy, v.All)
		}
		if labels := v.Labels != "none"; labels != (v.Name == "phone") {
			t.Errorf("the list, %s: labels: %s", v.Name, v.Labels)
		}
	}
	if n := 4*len(sceneStates) + 2; len(seen.Views) < n {
		t.Errorf("%d views, want at least %d", len(seen.Views), n)
	}
	if len(seen.Problems)+len(seen.Foreign) > 0 {
		t.Errorf("the console says %q, others were asked: %q", seen.Problems, seen.Foreign)
	}
	if seen.Amber > 5 || seen.Silent > 8 {
		t.Errorf("%.1f s until an error shows, %.1f s until the instance is known to be gone", seen.Amber, seen.Silent)
	}
	if len(seen.Paused) != 2 || seen.Paused[0] != "true" || seen.Resumed[0] != "false" || seen.Target < 36 {
		t.Errorf("pause by keyboard: %q, %q; the button is %.0f high", seen.Paused, seen.Resumed, seen.Target)
	}
	for i, want := range []string{
		"Skip to content", "pause", "whole", "day", "Details of each lease", "example-h", "status (JSON)", "metrics",
	} {
		if i >= len(seen.Focus) || seen.Focus[i].What != want || seen.Focus[i].Outline == "none" {
			t.Errorf("tab %d: %+v, want %s with an outline", i+1, seen.Focus, want)
			break
		}
	}
	keep(t, dir)
}

// keep puts the pictures of docs into the directory that SCREENSHOTS names, small enough for a repository.
func keep(t *testing.T, from string) {
	to := os.Getenv("SCREENSHOTS")
	for name, made := range pictures {
		picture := shrink(t, filepath.Join(from, made))
		if len(picture) > 150_000 {
			t.Errorf("%s takes %d bytes", name, len(picture))
		}
		if to == "" {
			continue
		}
		if err := os.WriteFile(filepath.Join(to, name), picture, 0o644); err != nil {
			t.Error(err)
		}
	}
}
