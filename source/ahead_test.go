package source_test

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"blobfeed/source"
)

// turns answers the first read at once. Each later one waits for its answer: bytes, or an error.
type turns struct {
	*memory
	asked   chan int64
	answers chan error
}

func (s *turns) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	if offset > 0 {
		s.asked <- offset
		select {
		case err := <-s.answers:
			if err != nil {
				return 0, err
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return s.memory.ReadAt(ctx, name, p, offset)
}

// With room for two windows, a reader asks for the second while the caller works on the first. What fails there is
// read again when it is needed, and Stop does not wait for the store.
func TestReadsAhead(t *testing.T) {
	const size = 400
	chunk, ids := header(), numbers(0, 60)
	for part := range slices.Chunk(ids, 3) {
		chunk = append(chunk, block(part...)...)
	}
	store := &turns{&memory{blobs: map[string][]byte{shardPath + "00000.avro": chunk}}, make(chan int64),
		make(chan error)}
	r := source.New(store, source.Options{ReadSize: size}).Shard(manifest(true), 0, source.ShardPosition{})
	r.LimitWindow(2 * size)
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var b source.Batch
	if err := r.Next(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	select {
	case at := <-store.asked:
		if at != size {
			t.Errorf("read ahead at %d, want %d", at, size)
		}
	case <-time.After(10 * time.Second):
		t.Fatal("nothing is read ahead")
	}
	r.Stop() // the store has not answered

	// As before, but every other part fails once.
	r = source.New(store, source.Options{ReadSize: size}).Shard(manifest(true), 0, source.ShardPosition{})
	r.LimitWindow(2 * size)
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	go func() {
		asked := map[int64]bool{}
		for at := range store.asked {
			var err error
			if !asked[at] && len(asked)%2 == 0 {
				err = errors.New("reset by peer")
			}
			asked[at] = true
			store.answers <- err
		}
	}()
	all, err := drain(t, r)
	if err != nil || !slices.Equal(all, ids) {
		t.Errorf("%d events, %v, want %d", len(all), err, len(ids))
	}
	r.Stop()
	close(store.asked)
}
