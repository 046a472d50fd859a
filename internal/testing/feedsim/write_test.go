package feedsim

import (
	"crypto/sha256"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// everything has all changes, Control too.
var everything = func() Mix { m := DefaultMix; m.Control = 3; return m }()

func writeAll(t *testing.T, sink Sink, spec Spec) ([]Expected, Summary) {
	t.Helper()
	f, err := New(sink, spec)
	if err != nil {
		t.Fatal(err)
	}
	var events []Expected
	if err := f.WriteAll(t.Context(), func(e Expected) { events = append(events, e) }); err != nil {
		t.Fatal(err)
	}
	return events, f.Summary()
}

// What is announced is what another reader finds, at the announced places.
func TestWriteIsDecodable(t *testing.T) {
	base := Spec{Segments: 3, Shards: 3, ChunksPerShard: 2, EventsPerSegment: 900, BlockEvents: 17, Blobs: 300,
		HotShare: 0.3, Mix: everything}
	with := func(change func(*Spec)) Spec { s := base; change(&s); return s }
	for name, spec := range map[string]Spec{
		"defaults":      {},
		"version 1":     with(func(s *Spec) { s.Versions = []int{1} }),
		"version 4":     with(func(s *Spec) { s.Versions = []int{4} }),
		"version 5":     with(func(s *Spec) { s.Versions = []int{5} }),
		"version 6":     with(func(s *Spec) { s.Versions = []int{6} }),
		"all versions":  with(func(s *Spec) { s.Versions = []int{1, 4, 5, 6} }),
		"deflate":       with(func(s *Spec) { s.Deflate = true }),
		"torn":          with(func(s *Spec) { s.TornAppends = true }),
		"15 minutes":    with(func(s *Spec) { s.Interval = 15 * time.Minute }),
		"other shards":  with(func(s *Spec) { s.ShardsOf = func(i int) int { return 1 + i*2 } }),
		"empty shards":  with(func(s *Spec) { s.EmptyShards = 2 }),
		"empty segment": with(func(s *Spec) { s.EmptyEvery = 2 }),
		"late shards":   with(func(s *Spec) { s.LateShards = 5 }),
		"header only":   with(func(s *Spec) { s.HeaderOnlyChunks = true }),
		"left open":     with(func(s *Spec) { s.LeaveOpen = true }),
		"few events":    with(func(s *Spec) { s.EventsPerSegment, s.ChunksPerShard = 4, 3 }),
	} {
		t.Run(name, func(t *testing.T) {
			root := t.TempDir()
			events, sum := writeAll(t, Dir(root), spec)
			checkFeed(t, root, events)
			checkPromises(t, events, spec.defaulted())
			checkSummary(t, root, events, sum)

			statuses, consumable := checkManifests(t, root)
			spec := spec.defaulted()
			want := slices.Repeat([]string{"Finalized"}, spec.Segments)
			if spec.LeaveOpen {
				want[len(want)-1] = "Publishing"
			}
			if !slices.Equal(statuses, want) {
				t.Errorf("statuses %v, want %v", statuses, want)
			}
			newest := spec.Start.Add(time.Duration(spec.Segments-1) * spec.Interval).Format(manifestTime)
			if consumable != newest {
				t.Errorf("lastConsumable is %s, the newest segment %s", consumable, newest)
			}
		})
	}
}

// checkPromises checks what doc.go says.
func checkPromises(t *testing.T, events []Expected, spec Spec) {
	t.Helper()
	ids, shards, last := map[string]bool{}, map[string]int{}, map[string]Expected{}
	var times, sequencers bool // not sorted somewhere
	for i, e := range events {
		if ids[e.ID] || len(e.ID) != 36 || len(e.Sequencer) != 48 || e.Seq != int64(i+1) {
			t.Fatalf("event %d: %+v", i, e)
		}
		ids[e.ID] = true
		at, err := time.Parse("2006-01-02T15:04:05.0000000Z", e.EventTime)
		begin, err2 := time.Parse(pathLayout, e.Segment)
		if err != nil || err2 != nil || at.Before(begin) || !at.Before(begin.Add(spec.Interval)) {
			t.Fatalf("event %d is at %s, in segment %s", i, e.EventTime, e.Segment)
		}
		if i > 0 && events[i-1].Segment == e.Segment {
			times = times || e.EventTime < events[i-1].EventTime
			sequencers = sequencers || strings.ToLower(e.Sequencer) < strings.ToLower(events[i-1].Sequencer)
		}
		if e.EventType == "Control" {
			if e.Key != "" || e.State {
				t.Fatalf("event %d: %+v", i, e)
			}
			continue
		}
		if e.Key != e.Container+"/"+e.Blob || e.Blob == "" {
			t.Fatalf("event %d: key %q of %q and %q", i, e.Key, e.Container, e.Blob)
		}
		if s, known := shards[e.Segment+e.Key]; known && s != e.Shard {
			t.Fatalf("%s is in shards %d and %d of %s", e.Key, s, e.Shard, e.Segment)
		}
		shards[e.Segment+e.Key] = e.Shard
		if l, known := last[e.Key]; known && (e.EventTime <= l.EventTime ||
			strings.ToLower(e.Sequencer) <= strings.ToLower(l.Sequencer)) {
			t.Fatalf("%s: %s %s after %s %s", e.Key, e.EventTime, e.Sequencer, l.EventTime, l.Sequencer)
		}
		last[e.Key] = e
	}
	if len(events) > 100 && (!times || !sequencers) {
		t.Errorf("times are sorted: %t, sequencers are sorted: %t", !times, !sequencers)
	}
}

func checkSummary(t *testing.T, root string, events []Expected, sum Summary) {
	t.Helper()
	var want Summary
	want.Segments, want.Finalized, want.Blocks = sum.Segments, sum.Finalized, sum.Blocks
	want.Events = int64(len(events))
	for _, e := range events {
		if e.State {
			want.States++
		}
		if e.Delete {
			want.Deletes++
		}
		if e.EventType == "Control" {
			want.Controls++
		}
	}
	for _, name := range chunkNames(t, root) {
		info, err := os.Stat(root + "/" + name)
		if err != nil {
			t.Fatal(err)
		}
		want.Chunks++
		want.Bytes += info.Size()
	}
	if sum != want {
		t.Errorf("summary %+v, want %+v", sum, want)
	}
}

// A big mix has every change that its version knows, and names of every odd kind.
func TestWriteHasEverything(t *testing.T) {
	events, _ := writeAll(t, Dir(t.TempDir()), Spec{EventsPerSegment: 30_000, Blobs: 1000, Versions: []int{5},
		Mix: everything})
	kinds := map[string]int{}
	var names strings.Builder
	for _, e := range events {
		kinds[fmt.Sprintf("%s %s state=%t delete=%t snapshot=%t", e.EventType, e.API, e.State, e.Delete,
			e.Snapshot != "")]++
		names.WriteString(e.Key + "\n")
	}
	if len(kinds) != int(changes) {
		t.Errorf("%d kinds of events, want %d: %v", len(kinds), changes, kinds)
	}
	for _, part := range []string{" ", "%", "#", "+", "é", "😀", "/blobs/", "//leading", "/\n", `"`, `\`, "&", "<"} {
		if !strings.Contains(names.String(), part) {
			t.Errorf("no name has %q", part)
		}
	}
}

func digest(t *testing.T, root string) string {
	t.Helper()
	h := sha256.New()
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(root + "/" + name)
		if err != nil {
			return err
		}
		defer f.Close()
		fmt.Fprintln(h, name)
		_, err = io.Copy(h, f)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return fmt.Sprintf("%x", h.Sum(nil))
}

func TestSeed(t *testing.T) {
	spec := Spec{Seed: 3, Segments: 2, Shards: 2, EventsPerSegment: 700, Versions: []int{4, 6}, HotShare: 0.1}
	write := func(spec Spec) (string, []Expected) {
		root := t.TempDir()
		events, _ := writeAll(t, Dir(root), spec)
		return digest(t, root), events
	}
	bytes, events := write(spec)
	again, eventsAgain := write(spec)
	if bytes != again || !slices.Equal(events, eventsAgain) {
		t.Error("the same spec gave another feed")
	}
	spec.TornAppends = true
	if torn, _ := write(spec); torn != bytes {
		t.Error("torn appends changed the bytes")
	}
	spec.Seed++
	other, eventsOther := write(spec)
	if other == bytes {
		t.Error("another seed gave the same feed")
	}
	ids := map[string]bool{}
	for _, e := range events {
		ids[e.ID] = true
	}
	for _, e := range eventsOther {
		if ids[e.ID] {
			t.Fatalf("both feeds have %s", e.ID)
		}
	}
}

func TestSpecIsChecked(t *testing.T) {
	for name, spec := range map[string]Spec{
		"seconds":         {Interval: 90 * time.Second},
		"101 shards":      {Shards: 101},
		"version 2":       {Versions: []int{2}},
		"hot share":       {HotShare: 2},
		"too much":        {Interval: time.Minute, EventsPerSegment: 100_000_000},
		"negatively late": {LateShards: -1},
		"all are empty":   {Shards: 2, EmptyShards: 2},
		"negative":        {Blobs: -1},
	} {
		if err := Write(t.Context(), Dir(t.TempDir()), spec, nil); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
}

func BenchmarkWrite(b *testing.B) {
	for _, c := range []struct {
		name string
		spec Spec
		emit func(Expected)
	}{
		{"silent", Spec{}, nil},
		{"announced", Spec{}, func(Expected) {}},
		{"deflate", Spec{Deflate: true}, nil},
	} {
		b.Run(c.name, func(b *testing.B) {
			const events = 200_000
			c.spec.Shards, c.spec.EventsPerSegment, c.spec.Blobs = 3, events, 20_000
			b.ReportAllocs()
			for b.Loop() {
				if err := Write(b.Context(), Dir(b.TempDir()), c.spec, c.emit); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
		})
	}
}
