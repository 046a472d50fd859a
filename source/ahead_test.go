package source_test

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"blobfeed/source"
)

// turns answers the first read at once. Each later one waits for its answer: bytes, or an error.
type turns struct {
	*memory
	asked chan turn
}

// turn is a read that waits. Who gave it up needs no answer.
type turn struct {
	at     int64
	answer chan error
}

func (s *turns) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	if offset > 0 {
		waits := turn{offset, make(chan error, 1)}
		select {
		case s.asked <- waits:
		case <-ctx.Done():
			return 0, ctx.Err()
		}
		select {
		case err := <-waits.answer:
			if err != nil {
				return 0, err
			}
		case <-ctx.Done():
			return 0, ctx.Err()
		}
	}
	return s.memory.ReadAt(ctx, name, p, offset)
}

// With room for four windows, a reader asks for three while the caller works on the first. What fails there is read
// again when it is needed, as the room changes, and Stop does not wait for the store.
func TestReadsAhead(t *testing.T) {
	const size = 400
	chunk, ids := header(), numbers(0, 150)
	for part := range slices.Chunk(ids, 3) {
		chunk = append(chunk, block(part...)...)
	}
	store := &turns{&memory{blobs: map[string][]byte{shardPath + "00000.avro": chunk}}, make(chan turn)}
	r, b := begun(t, store, size)
	var asked []int64
	for len(asked) < 3 {
		select {
		case waits := <-store.asked:
			asked = append(asked, waits.at)
		case <-time.After(10 * time.Second):
			t.Fatalf("read ahead at %d, want three parts", asked)
		}
	}
	slices.Sort(asked)
	if want := []int64{size, 2 * size, 3 * size}; !slices.Equal(asked, want) {
		t.Errorf("read ahead at %d, want %d", asked, want)
	}
	r.Stop() // the store has not answered

	// Every other part fails once, and the room changes with each block.
	r = source.New(store, source.Options{ReadSize: size}).Shard(manifest(true), 0, source.ShardPosition{})
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	reset := errors.New("reset by peer")
	go func() {
		known := map[int64]bool{}
		for waits := range store.asked {
			var err error
			if !known[waits.at] && len(known)%2 == 0 {
				err = reset
			}
			known[waits.at] = true
			waits.answer <- err
		}
	}()
	var all []string
	for room := int64(4 * size); ; room = room*7/5%(5*size) + 1 {
		r.LimitWindow(room)
		if err := r.Next(t.Context(), &b); errors.Is(err, io.EOF) {
			break
		} else if err != nil && !errors.Is(err, reset) {
			t.Fatal(err)
		}
		for _, e := range b.Events {
			all = append(all, e.ID)
		}
	}
	if !slices.Equal(all, ids) {
		t.Errorf("%d events, want %d", len(all), len(ids))
	}
	r.Stop()
	close(store.asked)
}

// begun returns a reader with room for four windows that has read its first block.
func begun(t *testing.T, store source.Store, size int64) (r *source.ShardReader, b source.Batch) {
	t.Helper()
	r = source.New(store, source.Options{ReadSize: size}).Shard(manifest(true), 0, source.ShardPosition{})
	r.LimitWindow(4 * size)
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if err := r.Next(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	return r, b
}

// Parts that were read ahead are used up also where the room has become smaller than they are: no byte is read twice.
func TestReadAheadIsUsedUp(t *testing.T) {
	const size = 400
	chunk, ids := header(), numbers(0, 150)
	for part := range slices.Chunk(ids, 3) {
		chunk = append(chunk, block(part...)...)
	}
	store := &memory{blobs: map[string][]byte{shardPath + "00000.avro": chunk}}
	r, _ := begun(t, store, size)
	r.LimitWindow(size / 2)
	if _, err := drain(t, r); err != nil {
		t.Fatal(err)
	}
	r.Stop()
	if got := store.bytes.Load(); got != int64(len(chunk)) {
		t.Errorf("%d bytes read of %d", got, len(chunk))
	}
}

// Who resumes inside a chunk reads its header and what follows the position, and nothing between them.
func TestReadAheadOfAResumedChunk(t *testing.T) {
	chunk := header()
	var last int
	for part := range slices.Chunk(numbers(0, 5000), 3) {
		last = len(chunk)
		chunk = append(chunk, block(part...)...)
	}
	store := &memory{blobs: map[string][]byte{shardPath + "00000.avro": chunk}}
	r := source.New(store, source.Options{ReadSize: 20 << 10}).Shard(manifest(true), 0,
		source.ShardPosition{Offset: int64(last)})
	r.LimitWindow(1 << 20)
	if ids := pollAndDrain(t, r, true); len(ids) != 2 {
		t.Errorf("%d events", len(ids))
	}
	r.Stop()
	if got, want := store.bytes.Load(), int64(16<<10+len(chunk)-last); got != want {
		t.Errorf("%d bytes read, want %d", got, want)
	}
}
