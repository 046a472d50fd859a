package source_test

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"testing"
	"unsafe"

	"blobfeed/source"
)

// windows notes how much is read at a time, and the room for it.
type windows struct {
	*memory
	sizes, rooms []int
	last         []byte // that was to be filled
}

func (w *windows) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	w.sizes, w.rooms, w.last = append(w.sizes, len(p)), append(w.rooms, cap(p)), p
	return w.memory.ReadAt(ctx, name, p, offset)
}

// A limited window bounds later reads, gives back a larger window that is there already, and still takes a block that
// does not fit (I9).
func TestLimitWindow(t *testing.T) {
	const large, small = 4000, 400
	chunk, ids := header(), numbers(0, 600)
	for part := range slices.Chunk(ids, 3) {
		chunk = append(chunk, block(part...)...)
	}
	store := &windows{memory: &memory{blobs: map[string][]byte{shardPath + "00000.avro": chunk}}}
	r := source.New(store, source.Options{ReadSize: large}).Shard(manifest(true), 0, source.ShardPosition{})
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	var b source.Batch
	if err := r.Next(t.Context(), &b); err != nil {
		t.Fatal(err)
	}
	if len(store.sizes) != 1 || store.sizes[0] != large {
		t.Fatalf("reads of %d bytes, want one of %d", store.sizes, large)
	}
	store.sizes, store.rooms = nil, nil
	r.LimitWindow(small)
	rest, err := drain(t, r)
	if err != nil || len(rest) != len(ids)-3 {
		t.Fatalf("%d events, %v", len(rest), err)
	}
	if size, room := slices.Max(store.sizes), slices.Max(store.rooms); size > small || room > 2*small {
		t.Errorf("a read of %d bytes into room for %d, want at most %d and %d", size, room, small, 2*small)
	}

	r = source.New(store, source.Options{ReadSize: large}).Shard(manifest(true), 0, source.ShardPosition{})
	r.LimitWindow(10) // less than a block
	if err := r.Poll(t.Context(), true); err != nil {
		t.Fatal(err)
	}
	if all, err := drain(t, r); err != nil || !slices.Equal(all, ids) {
		t.Errorf("%d events, %v", len(all), err)
	}
}

// A reader that has nothing left to read keeps no window: the next poll may be hours away (I9).
func TestIdleReaderHasNoWindow(t *testing.T) {
	const name = shardPath + "00000.avro"
	store := &windows{memory: &memory{blobs: map[string][]byte{name: header()}}}
	for range 100 {
		store.blobs[name] = append(store.blobs[name], block("a")...)
	}
	r := source.New(store, source.Options{}).Shard(manifest(false), 0, source.ShardPosition{})
	for range 2 {
		if err := r.Poll(t.Context(), false); err != nil {
			t.Fatal(err)
		}
		if _, err := drain(t, r); err != nil {
			t.Fatal(err)
		}
		store.blobs[name] = append(store.blobs[name], block("b")...)
	}
	if room := store.rooms[len(store.rooms)-1]; len(store.rooms) != 2 || room > 100 {
		t.Errorf("%d reads, the last into room for %d bytes: the window of the first one", len(store.rooms), room)
	}
}

// Borrow returns the same events as Next, but their strings are parts of the window.
func TestBorrow(t *testing.T) {
	chunk := header()
	for part := range slices.Chunk(numbers(0, 600), 7) {
		chunk = append(chunk, block(part...)...)
	}
	store := &windows{memory: &memory{blobs: map[string][]byte{shardPath + "00000.avro": chunk}}}
	reader := func() *source.ShardReader {
		r := source.New(store, source.Options{ReadSize: 1000}).Shard(manifest(true), 0, source.ShardPosition{})
		if err := r.Poll(t.Context(), true); err != nil {
			t.Fatal(err)
		}
		return r
	}
	within := func(s string) bool {
		all := store.last[:cap(store.last)]
		at := uintptr(unsafe.Pointer(unsafe.StringData(s)))
		first := uintptr(unsafe.Pointer(unsafe.SliceData(all)))
		return at >= first && at < first+uintptr(len(all))
	}
	own, lent := reader(), reader()
	shared := 0
	for {
		var a, b source.Batch
		errOwn := own.Next(t.Context(), &a)
		if len(a.Events) > 0 && within(a.Events[0].ID) {
			t.Fatal("Next returned a part of the window")
		}
		errLent := lent.Borrow(t.Context(), &b)
		if !errors.Is(errLent, errOwn) {
			t.Fatalf("%v, want %v", errLent, errOwn)
		}
		if errOwn != nil {
			break
		}
		if !reflect.DeepEqual(a, b) {
			t.Fatalf("Borrow returned %+v, Next %+v", b, a)
		}
		if within(b.Events[len(b.Events)-1].ID) {
			shared++
		}
	}
	if shared < 10 {
		t.Errorf("the events of %d blocks are parts of the bytes that were read", shared)
	}
}
