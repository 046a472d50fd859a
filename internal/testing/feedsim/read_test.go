package feedsim

import (
	"context"
	"errors"
	"io"
	"testing"

	"blobfeed/source"
	"blobfeed/source/dir"
)

// The project's own reader finds every event that Write announces, in the order of its blob, and no other.
func TestRead(t *testing.T) {
	for name, spec := range map[string]Spec{
		"plain":    {Segments: 2},
		"versions": {Segments: 3, Shards: 3, ChunksPerShard: 3, EventsPerSegment: 500, Versions: []int{1, 4, 5, 6}},
		"open":     {Segments: 2, Shards: 2, LeaveOpen: true, BlockEvents: 7, HotShare: 0.5, Versions: []int{6}},
	} {
		t.Run(name, func(t *testing.T) {
			ctx, root := t.Context(), t.TempDir()
			want := map[string][]string{}
			if err := Write(ctx, Dir(root), spec, func(e Event) {
				want[e.Key] = append(want[e.Key], e.ID+e.EventType+e.Sequencer)
			}); err != nil {
				t.Fatal(err)
			}
			store, err := dir.New(root)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string][]string{}
			for e, err := range events(ctx, source.New(store, source.Options{ReadSize: 10_000})) {
				if err != nil {
					t.Fatal(err)
				}
				key := key(e.Subject)
				got[key] = append(got[key], e.ID+e.EventType+e.Sequencer)
			}
			if len(got) != len(want) {
				t.Errorf("%d blobs, want %d", len(got), len(want))
			}
			for k, w := range want {
				if g := got[k]; len(g) != len(w) {
					t.Errorf("%s has %d events, want %d", k, len(g), len(w))
				} else {
					for i := range w {
						if g[i] != w[i] {
							t.Fatalf("%s, event %d: %s, want %s", k, i, g[i], w[i])
						}
					}
				}
			}
		})
	}
}

func key(subject string) string {
	const prefix = "/blobServices/default/containers/"
	for i := len(prefix); ; i++ {
		if subject[i:i+7] == "/blobs/" {
			return subject[len(prefix):i] + "/" + subject[i+7:]
		}
	}
}

// events reads a whole feed.
func events(ctx context.Context, f *source.Feed) func(yield func(source.Event, error) bool) {
	return func(yield func(source.Event, error) bool) {
		for seg, err := range f.Segments(ctx, source.Segment{}) {
			if err != nil {
				yield(source.Event{}, err)
				return
			}
			m, err := f.Manifest(ctx, seg)
			if err != nil {
				yield(source.Event{}, err)
				return
			}
			for _, shard := range m.Shards {
				r := f.Shard(m, shard, source.ShardPosition{})
				err := r.Poll(ctx, m.Finalized)
				for err == nil {
					var b source.Batch
					if err = r.Next(ctx, &b); err == nil {
						for _, e := range b.Events {
							if !yield(e, nil) {
								return
							}
						}
					}
				}
				if !errors.Is(err, io.EOF) {
					yield(source.Event{}, err)
					return
				}
			}
		}
	}
}
