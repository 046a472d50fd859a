package source_test

import (
	"slices"
	"testing"

	"blobfeed/source"
)

// The text of a position is in headers, dead letters and checkpoints: it must never change.
func TestPositionHasOneText(t *testing.T) {
	for text, want := range map[string]source.Position{
		"2020/05/27/1500/00/00000/1488/3": {Segment: segmentOf(t, "2020/05/27/1500"), Offset: 1488,
			Index: 3},
		"2026/12/31/2345/11/100000/5000000000/12": {Segment: segmentOf(t, "2026/12/31/2345"), Shard: 11,
			Chunk: 100000, Offset: 5000000000, Index: 12},
		"1601/01/01/0000/100/00042/0/0": {Segment: segmentOf(t, "1601/01/01/0000"), Shard: 100,
			Chunk: 42},
		"9999/12/31/2359/09/99999/9223372036854775807/1": {Segment: segmentOf(t, "9999/12/31/2359"), Shard: 9,
			Chunk: 99999, Offset: 1<<63 - 1, Index: 1},
	} {
		if got, err := source.ParsePosition(text); err != nil || got != want || want.String() != text {
			t.Errorf("%s: %+v, %v; written %s", text, got, err, want)
		}
	}
	for _, text := range []string{
		"", "x", "2026/12/31/2345", "2026/12/31/2345/", "2026/12/31/2345/11/1/1", "2026/12/31/2345/11/1/1/",
		"2026/12/31/2345/11/1/1/1/1",
		"2026/12/31/2345/11/1/1/-1", "2026/12/31/2345/11/+1/1/1", "2026/12/31/2345//1/1/1",
		"2026/12/31/2345/11/1/9223372036854775808/1",
		"2026/13/31/2345/11/1/1/1", "2026/12/31/2360/11/1/1/1", "2026-12-31-2345/11/1/1/1", "/00/00000/0/0",
	} {
		if p, err := source.ParsePosition(text); err == nil {
			t.Errorf("%q is %+v", text, p)
		}
	}
	if at := (source.ShardPosition{Chunk: 7, Offset: 1488}).String(); at != "00007/1488" ||
		source.ShardName(7) != "07" {
		t.Error(at, source.ShardName(7))
	}
}

// Numbers compare as numbers, also where their texts do not: chunk 100000 comes after chunk 99999.
func TestPositionsCompare(t *testing.T) {
	texts := []string{
		"2020/05/27/1500/01/99999/9000/9", "2020/05/27/1600/00/00000/0/0", "2020/05/27/1600/00/00000/9/12",
		"2020/05/27/1600/00/00000/10/0",
		"2020/05/27/1600/00/00000/10/2", "2020/05/27/1600/00/00000/10/10", "2020/05/27/1600/00/99999/10/0",
		"2020/05/27/1600/00/100000/10/0",
		"2020/05/27/1600/09/00000/0/0", "2020/05/27/1600/100/00000/0/0", "2021/01/01/0000/00/00000/0/0",
	}
	var all []source.Position
	for _, text := range texts {
		p, err := source.ParsePosition(text)
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, p)
	}
	for i, a := range all {
		for j, b := range all {
			if got, want := a.Compare(b), min(max(i-j, -1), 1); got != want {
				t.Errorf("%s and %s: %d, want %d", a, b, got, want)
			}
		}
	}
	slices.Reverse(all)
	slices.SortFunc(all, source.Position.Compare)
	if all[0].String() != texts[0] {
		t.Error(all)
	}
}

func FuzzPosition(f *testing.F) {
	f.Add("2020/05/27/1500/00/00001/1488/3")
	f.Fuzz(func(t *testing.T, s string) {
		p, err := source.ParsePosition(s)
		if err != nil {
			return
		}
		if back, err := source.ParsePosition(p.String()); err != nil || back != p {
			t.Errorf("%q: %+v, %+v, %v", s, p, back, err)
		}
	})
}
