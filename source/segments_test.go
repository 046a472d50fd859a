package source_test

import (
	"strings"
	"testing"
	"time"

	"blobfeed/source"
)

func TestNoSegmentsBeforeTheFirstWatermark(t *testing.T) {
	m := indexed("", "1601/01/01/0000", "2020/05/27/1500")
	feed := source.New(m, source.Options{})
	for range 2 { // keep polling
		if last, err := feed.LastConsumable(t.Context()); err != nil || !last.IsZero() {
			t.Errorf("%v, %v", last, err)
		}
		if got := segments(t, m, ""); got != "" {
			t.Errorf("without a watermark: %s", got)
		}
	}
	m.blobs["meta/segments.json"] = []byte(`{"lastConsumable":"2020-05-27T15:00:00.000Z"}`)
	if got := segments(t, m, ""); got != "2020/05/27/1500" {
		t.Errorf("with one: %q", got)
	}
	if _, err := feed.LastConsumable(t.Context()); err != nil {
		t.Error(err)
	}
	delete(m.blobs, "meta/segments.json") // does not mean that all is read
	if last, err := feed.LastConsumable(t.Context()); err == nil || !strings.Contains(err.Error(), "is gone") {
		t.Errorf("behind the watermark: %v, %v", last, err)
	}
}

// Segments come oldest first, after the one that is named, up to the newest that may be read, and without the service's
// own one of the year 1601.
func TestSegmentsBetweenPositionAndWatermark(t *testing.T) {
	minutes := []string{"2020/07/30/0800", "2020/07/30/0815", "2020/07/30/0830", "2020/07/30/0900", "2020/07/30/1810",
		"2020/07/30/1815"}
	gaps := []string{"2020/05/27/1500", "2020/05/31/2300", "2020/09/01/0000", "2022/02/28/2300"}
	newYear := []string{"2020/12/31/2200", "2020/12/31/2300", "2021/01/01/0000", "2021/01/01/0100", "2022/01/01/0000"}
	hours := []string{"2020/05/27/1500", "2020/05/27/1600", "2020/05/27/1700", "2020/05/28/0000", "2020/06/01/0000",
		"2021/01/01/0000"}
	digits := []string{"1601/01/01/0000", "1601/01/01/0100", "2016/01/01/1601", "2016/01/16/0100", "2020/05/27/1601"}
	epoch := []string{"1601/01/01/0000"}
	for _, c := range []struct {
		what  string
		names []string
		last  string
		after string
		want  []string
	}{
		{"below an hour", minutes, "2020-07-30T18:10:00Z", "", minutes[:5]},
		{"below an hour, after one", minutes, "2020-07-30T18:10:00Z", "2020/07/30/0815", minutes[2:5]},
		{"below an hour, after none", minutes, "2020-07-30T18:10:00Z", "2020/07/30/0829", minutes[2:5]},
		{"a gap of days", gaps, "2022-03-01T00:00:00Z", "2020/05/27/1500", gaps[1:]},
		{"a gap of months", gaps, "2022-03-01T00:00:00Z", "2020/05/31/2300", gaps[2:]},
		{"in a gap", gaps, "2022-03-01T00:00:00Z", "2020/06/15/0815", gaps[2:]},
		{"a gap of years", gaps, "2022-03-01T00:00:00Z", "2020/09/01/0000", gaps[3:]},
		{"after the last", gaps, "2022-03-01T00:00:00Z", "2022/02/28/2300", nil},
		{"up to the year's end", newYear, "2020-12-31T23:00:00Z", "2020/12/31/2200", newYear[1:2]},
		{"past the year's end", newYear, "2021-01-01T00:00:00Z", "2020/12/31/2300", newYear[2:3]},
		{"past the year's end, after none", newYear, "2021-01-01T00:00:00Z", "2020/12/31/2330", newYear[2:3]},
		{"watermark before the first", hours, "2020-05-27T14:59:59.999Z", "", nil},
		{"watermark in a segment", hours, "2020-05-27T15:59:00.000Z", "", hours[:1]},
		{"watermark at a begin", hours, "2020-05-27T16:00:00.000Z", "", hours[:2]},
		{"watermark in a gap", hours, "2020-05-27T18:00:00.000Z", "", hours[:3]},
		{"watermark of another zone", hours, "2020-05-28T02:00:00+02:00", "", hours[:4]},
		// The year counts, not the text: a minute, a day and years have the same digits.
		{"without 1601", digits, "2030-01-01T00:00:00Z", "", digits[2:]},
		{"without 1601, after one", digits, "2030-01-01T00:00:00Z", "2016/01/01/1601", digits[3:]},
		{"only 1601", epoch, "2020-05-27T15:00:00Z", "", nil},
		{"only 1601, resumed", epoch, "2020-05-27T15:00:00Z", "2020/05/27/1400", nil},
		{"watermark of 1601", epoch, "1601-01-01T00:00:00Z", "", nil},
		{"after the watermark", hours, "2020-05-27T15:00:00Z", "2020/05/27/1500", nil},
		{"in the future", hours, "2020-05-27T15:00:00Z", "2031/01/01/0000", nil},
	} {
		if got, want := segments(t, indexed(c.last, c.names...), c.after), strings.Join(c.want, " "); got != want {
			t.Errorf("%s: %s, want %s", c.what, got, want)
		}
	}
}

// A segment is named by its minute. Times that no name can have are before all segments, or the last one there can be.
func TestSegmentNamesItsMinute(t *testing.T) {
	if at := segmentOf(t, "2020/07/30/1810").Time(); !at.Equal(time.Date(2020, 7, 30, 18, 10, 0, 0, time.UTC)) {
		t.Error(at)
	}
	for at, want := range map[time.Time]string{
		time.Date(2020, 7, 30, 18, 10, 59, 999, time.UTC):                   "2020/07/30/1810",
		time.Date(2020, 7, 30, 18, 10, 0, 0, time.FixedZone("", 2*3600)):    "2020/07/30/1610",
		time.Date(1601, 1, 1, 0, 0, 0, 0, time.UTC):                         "1601/01/01/0000",
		time.Date(1600, 12, 31, 23, 59, 0, 0, time.UTC):                     "",
		time.Date(-5, 1, 1, 0, 0, 0, 0, time.UTC):                           "",
		time.Date(9999, 12, 31, 23, 59, 0, 0, time.FixedZone("", -23*3600)): "9999/12/31/2359",
		{}: "",
	} {
		if got := source.SegmentAt(at).String(); got != want {
			t.Errorf("%s: %s, want %s", at, got, want)
		}
	}
	first, next := segmentOf(t, "2020/12/31/2359"), segmentOf(t, "2021/01/01/0000")
	if source.Before(next) != first || source.Before(segmentOf(t, "1601/01/01/0000")) != (source.Segment{}) ||
		source.Before(source.Segment{}) != (source.Segment{}) {
		t.Error(source.Before(next))
	}
	if next.Compare(first) != 1 || first.Compare(next) != -1 || next.Compare(next) != 0 ||
		(source.Segment{}).Compare(first) != -1 {
		t.Error("segments do not compare like times")
	}
}

func FuzzParseSegment(f *testing.F) {
	f.Add("2020/05/27/1500")
	f.Add("")
	f.Fuzz(func(t *testing.T, s string) {
		if seg, err := source.ParseSegment(s); err == nil && seg.String() != s {
			t.Errorf("%q becomes %q", s, seg)
		}
	})
}
