package source_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"blobfeed/source"
)

func watermark(t time.Time) []byte {
	return fmt.Appendf(nil, `{"version":0,"lastConsumable":%q}`, t.Format("2006-01-02T15:04:05.000Z"))
}

// The engine asks for the next segment again and again, so what that costs is counted: most often one listing, and none
// where the feed has nothing newer.
func TestSegmentsCost(t *testing.T) {
	m := &memory{blobs: map[string][]byte{"idx/segments/1601/01/01/0000/meta.json": nil}}
	first := time.Date(2020, 11, 29, 0, 0, 0, 0, time.UTC)
	last := first.AddDate(0, 3, 0)
	for at := first; !at.After(last.AddDate(0, 1, 0)); at = at.Add(time.Hour) {
		m.blobs["idx/segments/"+at.Format("2006/01/02/1504")+"/meta.json"] = nil
	}
	m.blobs["meta/segments.json"] = watermark(last)
	feed := source.New(m, source.Options{})
	next := func(after time.Time) (next source.Segment) {
		m.lists = 0
		for seg, err := range feed.Segments(t.Context(), source.SegmentAt(after)) {
			if err != nil {
				t.Fatal(err)
			}
			return seg
		}
		return source.Segment{}
	}
	for _, c := range []struct {
		after string
		want  string
		lists int
	}{
		{"2020-12-05 03:00", "2020/12/05/0400", 1},
		{"2020-12-05 23:00", "2020/12/06/0000", 3}, // the old day, the month, the new day
		{"2020-12-31 23:00", "2021/01/01/0000", 7}, // up to the years, and down again
		{"2021-02-28 23:00", "2021/03/01/0000", 5}, // is the newest one below
		{"2021-03-01 00:00", "", 0},
		{"2021-03-05 00:00", "", 0},
	} {
		after, err := time.Parse("2006-01-02 15:04", c.after)
		if err != nil {
			t.Fatal(err)
		}
		if c.after == "2021-02-28 23:00" {
			m.blobs["meta/segments.json"] = watermark(time.Date(2021, 3, 1, 0, 0, 0, 0, time.UTC))
		}
		if got := next(after).String(); got != c.want || m.lists != c.lists {
			t.Errorf("after %s: %q in %d listings, want %q in %d", c.after, got, m.lists, c.want, c.lists)
		}
	}
}

// One iterator over three months lists each day once, and gives the same as asking again for each.
func TestSegmentsAgreeHoweverAsked(t *testing.T) {
	m := &memory{blobs: map[string][]byte{"idx/segments/1601/01/01/0000/meta.json": nil}}
	first := time.Date(2019, 12, 30, 0, 0, 0, 0, time.UTC)
	last := first
	days := map[string]bool{}
	for i := range 400 { // gaps of up to two weeks, not only at full hours
		last = last.Add(time.Duration(15*(1+i*i*37%97)) * time.Minute)
		if i%50 == 0 {
			last = last.AddDate(0, 0, 13)
		}
		m.blobs["idx/segments/"+last.Format("2006/01/02/1504")+"/meta.json"] = nil
		days[last.Format("2006/01/02")] = true
	}
	m.blobs["meta/segments.json"] = watermark(last)
	feed := source.New(m, source.Options{})
	var all []source.Segment
	for seg, err := range feed.Segments(t.Context(), source.Segment{}) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, seg)
	}
	if len(all) != 400 || m.lists > len(days)+14+3 {
		t.Errorf("%d segments in %d listings for %d days", len(all), m.lists, len(days))
	}
	after := source.Segment{}
	for i, want := range all {
		for seg, err := range feed.Segments(t.Context(), after) {
			if err != nil || seg != want {
				t.Fatalf("%d: after %s: %s, %v, want %s", i, after, seg, err, want)
			}
			break
		}
		after = want
	}
}

// A watermark that can't be understood is an error. Taken as "none yet" the feed would stand still, and nobody would
// know.
func TestWatermark(t *testing.T) {
	for text, ok := range map[string]bool{
		"":                        false,
		"{":                       false,
		`{}`:                      false,
		`{"version":0}`:           false,
		`{"lastConsumable":null}`: false,
		// a partial body
		`{"lastConsumable":"2021-01-01T00:15:00.000Z"`:                                            false,
		`{"lastConsumable":"yesterday"}`:                                                          false,
		`{"lastConsumable":"2021-01-01T00:15:00.000Z","storageDiagnostics":{"version":0}}`:        true,
		"\xef\xbb\xbf" + `{"lastConsumable":"2021-01-01T00:15:00Z"}`:                              true,
		strings.Repeat(" ", 4096-44) + `{"lastConsumable":"2021-01-01T00:15:00.000Z"}` + "\r\n\n": true,
	} {
		at, err := source.New(&memory{blobs: map[string][]byte{"meta/segments.json": []byte(text)}},
			source.Options{}).LastConsumable(t.Context())
		switch {
		case ok && (err != nil || !at.Equal(time.Date(2021, 1, 1, 0, 15, 0, 0, time.UTC))):
			t.Errorf("%.60q: %v, %v", text, at, err)
		case !ok && (err == nil || !strings.Contains(err.Error(), "meta/segments.json")):
			t.Errorf("%.60q: %v, %v, want an error that names the blob", text, at, err)
		}
	}
}

// Whatever the watermark says, listing up to it does not panic, and yields nothing that is after it.
func FuzzWatermark(f *testing.F) {
	for _, s := range []string{"2021-01-01T00:15:00.000Z", "1600-01-01T00:00:00Z", "0001-01-01T00:00:01Z",
		"0000-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59"} {
		f.Add(`{"lastConsumable":"` + s + `"}`)
	}
	f.Fuzz(func(t *testing.T, s string) {
		m := &memory{blobs: map[string][]byte{"meta/segments.json": []byte(s)}}
		for _, seg := range []string{"1601/01/01/0000", "2020/12/31/2300", "2021/01/01/0015", "2021/01/01/0030",
			"9999/12/31/2359"} {
			m.blobs["idx/segments/"+seg+"/meta.json"] = nil
		}
		feed := source.New(m, source.Options{})
		last, _ := feed.LastConsumable(t.Context())
		for seg, err := range feed.Segments(t.Context(), source.Segment{}) {
			if err == nil && seg.Time().After(last) {
				t.Errorf("%s is after %s", seg, last)
			}
		}
	})
}
