package source_test

import (
	"strings"
	"testing"
	"time"

	"blobfeed/source"
)

// Tests with a number in their name are rows of the list of what a reader of the feed has to get right; more of them are in
// packages ocf, azure, envelope and bridge.

// segments returns those that the feed in m yields after one, by their names.
func segments(t *testing.T, m *memory, after string) string {
	t.Helper()
	seg, err := source.ParseSegment(after)
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for s, err := range source.New(m, source.Options{}).Segments(t.Context(), seg) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, s.String())
	}
	return strings.Join(all, " ")
}

// indexed returns a feed with those segments, which may be read up to last.
func indexed(last string, names ...string) *memory {
	m := &memory{blobs: map[string][]byte{}}
	for _, name := range names {
		m.blobs["idx/segments/"+name+"/meta.json"] = []byte(`{}`)
	}
	if last != "" {
		m.blobs["meta/segments.json"] = []byte(`{"version":0,"lastConsumable":"` + last + `"}`)
	}
	return m
}

func TestChecklist02_NoWatermarkYet(t *testing.T) {
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
}

// The year counts, not the text: there are a minute, a day and years with the same digits.
func TestChecklist03_Year1601IsSkipped(t *testing.T) {
	m := indexed("2030-01-01T00:00:00Z", "1601/01/01/0000", "1601/01/01/0100", "2016/01/01/1601", "2016/01/16/0100", "2020/05/27/1601")
	if got := segments(t, m, ""); got != "2016/01/01/1601 2016/01/16/0100 2020/05/27/1601" {
		t.Error(got)
	}
	if got := segments(t, m, "2016/01/01/1601"); got != "2016/01/16/0100 2020/05/27/1601" {
		t.Error(got)
	}
}

func TestChecklist04_NothingAtOrAfterStart(t *testing.T) {
	for name, c := range map[string]struct {
		m     *memory
		after string
	}{
		"only 1601":              {indexed("2020-05-27T15:00:00Z", "1601/01/01/0000"), ""},
		"only 1601, resumed":     {indexed("2020-05-27T15:00:00Z", "1601/01/01/0000"), "2020/05/27/1400"},
		"watermark at the epoch": {indexed("1601-01-01T00:00:00Z", "1601/01/01/0000"), ""},
		"start after the newest": {indexed("2020-05-27T15:00:00Z", "2020/05/27/1400", "2020/05/27/1500"), "2020/05/27/1500"},
		"start in the future":    {indexed("2020-05-27T15:00:00Z", "2020/05/27/1500"), "2031/01/01/0000"},
	} {
		if got := segments(t, c.m, c.after); got != "" {
			t.Errorf("%s: %s", name, got)
		}
	}
	// The position is still good when there is something.
	if got := segments(t, indexed("2020-05-27T16:00:00Z", "1601/01/01/0000", "2020/05/27/1600"), "2020/05/27/1500"); got != "2020/05/27/1600" {
		t.Error(got)
	}
}

func TestChecklist05_SegmentsBelowAnHour(t *testing.T) {
	m := indexed("2020-07-30T18:10:00Z", "2020/07/30/0800", "2020/07/30/0815", "2020/07/30/0830", "2020/07/30/0900", "2020/07/30/1030", "2020/07/30/1810", "2020/07/30/1815")
	for after, want := range map[string]string{
		"":                "2020/07/30/0800 2020/07/30/0815 2020/07/30/0830 2020/07/30/0900 2020/07/30/1030 2020/07/30/1810",
		"2020/07/30/0815": "2020/07/30/0830 2020/07/30/0900 2020/07/30/1030 2020/07/30/1810",
		"2020/07/30/0829": "2020/07/30/0830 2020/07/30/0900 2020/07/30/1030 2020/07/30/1810",
	} {
		if got := segments(t, m, after); got != want {
			t.Errorf("after %q: %s", after, got)
		}
	}
	if seg, err := source.ParseSegment("2020/07/30/1810"); err != nil || !seg.Time().Equal(time.Date(2020, 7, 30, 18, 10, 0, 0, time.UTC)) {
		t.Errorf("%s, %v", seg.Time(), err)
	}
}

func TestChecklist08_NotAfterLastConsumable(t *testing.T) {
	m := indexed("", "2020/05/27/1500", "2020/05/27/1600", "2020/05/27/1700", "2020/05/28/0000", "2020/06/01/0000", "2021/01/01/0000")
	for last, want := range map[string]string{
		"2020-05-27T14:59:59.999Z":  "",
		"2020-05-27T15:59:00.000Z":  "2020/05/27/1500",
		"2020-05-27T16:00:00.000Z":  "2020/05/27/1500 2020/05/27/1600",
		"2020-05-27T18:00:00.000Z":  "2020/05/27/1500 2020/05/27/1600 2020/05/27/1700",
		"2020-05-28T02:00:00+02:00": "2020/05/27/1500 2020/05/27/1600 2020/05/27/1700 2020/05/28/0000",
	} {
		m.blobs["meta/segments.json"] = []byte(`{"lastConsumable":"` + last + `"}`)
		if got := segments(t, m, ""); got != want {
			t.Errorf("up to %s: %s, want %s", last, got, want)
		}
	}
}

func TestChecklist14_GapOfDays(t *testing.T) {
	m := indexed("2022-03-01T00:00:00Z", "2020/05/27/1500", "2020/05/31/2300", "2020/09/01/0000", "2022/02/28/2300")
	for after, want := range map[string]string{
		"2020/05/27/1500": "2020/05/31/2300", "2020/05/31/2300": "2020/09/01/0000", "2020/09/01/0000": "2022/02/28/2300", "2022/02/28/2300": "",
	} {
		if got, _, _ := strings.Cut(segments(t, m, after), " "); got != want {
			t.Errorf("after %s: %q, want %q", after, got, want)
		}
	}
}

func TestChecklist15_BoundHoldsInTheNextYear(t *testing.T) {
	m := indexed("2020-12-31T23:00:00Z", "2020/12/31/2200", "2020/12/31/2300", "2021/01/01/0000", "2021/01/01/0100", "2022/01/01/0000")
	if got := segments(t, m, "2020/12/31/2200"); got != "2020/12/31/2300" {
		t.Errorf("before the year's end: %s", got)
	}
	m.blobs["meta/segments.json"] = []byte(`{"lastConsumable":"2021-01-01T00:00:00Z"}`)
	for _, after := range []string{"2020/12/31/2300", "2020/12/31/2330"} {
		if got := segments(t, m, after); got != "2021/01/01/0000" {
			t.Errorf("after %s: %s", after, got)
		}
	}
}

// Segment times are exact to 15 minutes only: a reader, resumed or not, gives all events whatever their times.
func TestChecklist28_NoFilterBySegmentTime(t *testing.T) {
	schema := `{"type":"record","name":"E","fields":[{"name":"id","type":"string"},{"name":"eventTime","type":"string"}]}`
	head := append([]byte("Obj\x01\x02\x16avro.schema"), byte(len(schema)<<1&0x7f|0x80), byte(len(schema)>>6))
	head = append(append(append(head, schema...), 0), syncMarker...)
	chunk := head
	var ends []int
	times := []string{"2025-12-31T23:46:00.0000000Z", "2026-01-01T00:30:00.0000000Z", "2026-01-01T01:14:00.0000000Z", "2025-12-31T23:50:00.0000000Z", "1999-01-01T00:00:00.0000000Z", ""}
	for i, at := range times {
		data := append([]byte{2, byte('a' + i), byte(len(at) << 1)}, at...)
		chunk = append(append(append(chunk, 2, byte(len(data)<<1)), data...), syncMarker...)
		ends = append(ends, len(chunk))
	}
	m := &memory{blobs: map[string][]byte{shardPath + "00000.avro": chunk}}
	feed := source.New(m, source.Options{})
	if ids := pollAndDrain(t, feed.Shard(manifest(true), 0, source.ShardPosition{}), true); strings.Join(ids, "") != "abcdef" {
		t.Errorf("%v", ids)
	}
	for i, end := range ends {
		if ids := pollAndDrain(t, feed.Shard(manifest(true), 0, source.ShardPosition{Offset: int64(end)}), true); strings.Join(ids, "") != "abcdef"[i+1:] {
			t.Errorf("after %d: %v", i, ids)
		}
	}
}
