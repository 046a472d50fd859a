package feedsim

import (
	"bytes"
	"context"
	"errors"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"
)

// recorder is a sink that notes what is written, in order.
type recorder struct {
	Sink
	log []string
	// sizes of appends
	sizes []int
}

var status = regexp.MustCompile(`"(?:status|lastConsumable)":"(\w+|[^"]*)"`)

func (r *recorder) Put(ctx context.Context, name string, data []byte) error {
	r.log = append(r.log, name+" "+string(status.FindSubmatch(data)[1]))
	return r.Sink.Put(ctx, name, data)
}

func (r *recorder) Append(ctx context.Context, name string, data []byte) error {
	r.log, r.sizes = append(r.log, name), append(r.sizes, len(data))
	return r.Sink.Append(ctx, name, data)
}

func (r *recorder) take() []string {
	log := r.log
	r.log, r.sizes = nil, nil
	return log
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// A feed that grows is written in the service's order, and what was announced so far is readable after each step.
func TestFeedGrows(t *testing.T) {
	root, ctx := t.TempDir(), t.Context()
	sink := &recorder{Sink: Dir(root)}
	f, err := New(sink, Spec{Shards: 2, Versions: []int{6}, HeaderOnlyChunks: true})
	must(t, err)
	var events []Expected
	emit := func(e Expected) { events = append(events, e) }
	expect := func(want ...string) {
		t.Helper()
		if got := sink.take(); !slices.Equal(got, want) {
			t.Errorf("wrote\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
		}
		checkFeed(t, root, events)
	}
	const (
		first, second = "idx/segments/2026/01/01/0000/meta.json ", "idx/segments/2026/01/01/0100/meta.json "
		segments      = "meta/segments.json "
		one, two      = "2026-01-01T00:00:00.000Z", "2026-01-01T01:00:00.000Z"
		shard0        = "log/00/2026/01/01/0000/"
		shard1        = "log/01/2026/01/01/0000/"
	)
	if err := f.Append(ctx, 1, emit); !errors.Is(err, ErrNotOpen) {
		t.Errorf("appending before a segment is open: %v", err)
	}
	must(t, f.Open(ctx))
	expect(first+"Publishing", segments+one)
	must(t, f.Append(ctx, 20, emit))
	expect(shard0+"00000.avro", shard1+"00000.avro")
	f.Roll(1)
	f.Roll(1) // not yet begun: no hole
	must(t, f.Append(ctx, 20, emit))
	expect(shard0+"00000.avro", shard1+"00001.avro")
	must(t, f.Next(ctx))
	expect(shard0+"00001.avro", shard1+"00002.avro", second+"Publishing", segments+two, first+"Finalized", segments+two)
	if err := f.Open(ctx); err == nil {
		t.Error("opened a segment beside the open one")
	}
	must(t, f.Append(ctx, 5, emit))
	sink.take()
	f.Roll()
	must(t, f.Finalize(ctx))
	expect("log/00/2026/01/01/0100/00001.avro", "log/01/2026/01/01/0100/00001.avro", second+"Finalized", segments+two)
	if err := f.Finalize(ctx); !errors.Is(err, ErrNotOpen) {
		t.Errorf("finalizing again: %v", err)
	}
	checkPromises(t, events, Spec{}.defaulted())
}

func TestTornAppends(t *testing.T) {
	root := t.TempDir()
	sink := &recorder{Sink: Dir(root)}
	f, err := New(sink, Spec{TornAppends: true})
	must(t, err)
	var events []Expected
	must(t, f.Open(t.Context()))
	for range 5 {
		must(t, f.Append(t.Context(), 10, func(e Expected) { events = append(events, e) }))
		if len(sink.sizes) != 2 || sink.sizes[0] == 0 || sink.sizes[1] == 0 {
			t.Errorf("appends of %v bytes, want two", sink.sizes)
		}
		sink.take()
	}
	checkFeed(t, root, events)
}

// The header is, byte for byte, that of real files.
func TestHeader(t *testing.T) {
	for number, name := range map[int]string{1: "2020/01/16/2100", 4: "2020/05/29/2100"} {
		real, err := os.ReadFile("../../../testdata/real-2020/log/00/" + name + "/00000.avro")
		must(t, err)
		v, err := loadVersion(number, false)
		must(t, err)
		if !bytes.HasPrefix(real, v.header) {
			t.Errorf("version %d: the header differs from that of a real file", number)
		}
	}
}

// What a change says about itself is in the record.
func TestDetails(t *testing.T) {
	root := t.TempDir()
	writeAll(t, Dir(root), Spec{EventsPerSegment: 5000, Blobs: 200, Versions: []int{6}})
	seen := map[string]int{}
	for _, name := range chunkNames(t, root) {
		for _, e := range readChunk(t, root, name) {
			get := func(path ...string) (v any) {
				v = e.Data
				for _, p := range path {
					m, _ := v.(map[string]any)
					if v = m[p]; v == nil {
						return nil
					}
				}
				return v
			}
			ok := true
			switch what := e.Record["eventType"].(string) + " " + e.Data["api"].(string); what {
			case "BlobPropertiesUpdated SetBlobTags":
				seen[what]++
				ok = get("blobTagsUpdated", "map", "current", "project") == "x y"
			case "BlobPropertiesUpdated SetBlobProperties":
				seen[what]++
				ok = get("blobPropertiesUpdated", "map", "ContentType", "previous") == "text/plain"
			case "BlobPropertiesUpdated SetBlobMetadata":
				seen[what]++
				ok = e.Data["blobPropertiesUpdated"] == nil // as in real files
			case "BlobTierChanged SetBlobTier":
				seen[what]++
				ok = get("previousInfo", "map", "PreviousTier") != nil && e.Data["blobTier"] != nil
			case "BlobAsyncOperationInitiated SetBlobTier":
				seen[what]++
				ok = get("asyncOperationInfo", "map", "WasAsyncOperation") == "true"
			}
			if !ok {
				t.Fatalf("%s: %v", e.Position, e.Record)
			}
		}
	}
	if len(seen) != 5 {
		t.Errorf("saw only %v", seen)
	}
}

// With Spec.Now events have the times at which they happen, also when the clock is set back, or leaves the segment.
// Between Turn and Settle two segments are Publishing.
func TestFeedLive(t *testing.T) {
	root, ctx := t.TempDir(), t.Context()
	begin := time.Date(2026, 1, 1, 10, 0, 0, 0, time.UTC)
	now := begin.Add(10 * time.Minute)
	sink := &recorder{Sink: Dir(root)}
	f, err := New(sink, Spec{Shards: 2, Start: begin, Blobs: 20, Now: func() time.Time { return now }})
	must(t, err)
	must(t, f.Open(ctx))
	var events []Expected
	last := map[string]string{}
	between := func(from, to time.Time) func(Expected) {
		return func(e Expected) {
			events = append(events, e)
			at, err := time.Parse(time.RFC3339Nano, e.EventTime)
			must(t, err)
			if at.Before(from) || at.After(to) {
				t.Errorf("at %s an event has the time %s", now, at)
			}
			if e.Key != "" && e.EventTime <= last[e.Key] {
				t.Errorf("%s has %s after %s", e.Key, e.EventTime, last[e.Key])
			}
			last[e.Key] = e.EventTime
		}
	}
	must(t, f.Append(ctx, 300, between(now.Add(-time.Second), now.Add(time.Millisecond))))
	was := now
	now = now.Add(-time.Minute)
	must(t, f.Append(ctx, 300, between(was.Add(-time.Second), was.Add(time.Millisecond))))
	now = begin.Add(time.Hour + time.Minute)
	must(t, f.Append(ctx, 300, between(begin.Add(59*time.Minute), begin.Add(time.Hour))))
	sink.take()
	must(t, f.Turn(ctx))
	must(t, f.Append(ctx, 300, between(now.Add(-time.Second), now.Add(time.Millisecond))))
	const next = "idx/segments/2026/01/01/1100/meta.json Publishing"
	if log := sink.take(); log[0] != next || slices.Contains(log, "idx/segments/2026/01/01/1000/meta.json Finalized") {
		t.Errorf("wrote %q", log)
	}
	must(t, f.Settle(ctx))
	must(t, f.Settle(ctx)) // again: nothing
	if log := sink.take(); !slices.Equal(log, []string{"idx/segments/2026/01/01/1000/meta.json Finalized",
		"meta/segments.json 2026-01-01T11:00:00.000Z"}) {
		t.Errorf("wrote %q", log)
	}
	must(t, f.Finalize(ctx))
	checkFeed(t, root, events)
}
