package simulation

import (
	"bytes"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// blobs is the feed's container.
type blobs struct {
	mu      sync.Mutex
	data    map[string][]byte
	written func(name string, at int64, data []byte) []byte // may change what is appended to a chunk
	pace    func()                                          // waits between two writes
}

var _ feedsim.Sink = (*blobs)(nil)

// Put implements feedsim.Sink.
func (b *blobs) Put(_ context.Context, name string, data []byte) error {
	b.mu.Lock()
	b.data[name] = slices.Clone(data)
	b.mu.Unlock()
	b.pace()
	return nil
}

// Append implements feedsim.Sink.
func (b *blobs) Append(_ context.Context, name string, data []byte) error {
	b.mu.Lock()
	b.data[name] = slices.Concat(b.data[name], b.written(name, int64(len(b.data[name])), bytes.Clone(data)))
	b.mu.Unlock()
	b.pace()
	return nil
}

// overwrite replaces bytes of a blob, if it is still there.
func (b *blobs) overwrite(name string, at int64, data []byte) {
	b.mu.Lock()
	defer b.mu.Unlock()
	if old, ok := b.data[name]; ok {
		fresh := bytes.Clone(old)
		copy(fresh[at:], data)
		b.data[name] = fresh
	}
}

func (b *blobs) remove(name string) { b.removeAll([]string{name}, func() {}) }

// removeAll removes blobs, and says so, before anybody can see it.
func (b *blobs) removeAll(names []string, say func()) {
	b.mu.Lock()
	defer b.mu.Unlock()
	say()
	for _, name := range names {
		delete(b.data, name)
	}
}

// of returns the names of the blobs of a segment.
func (b *blobs) of(segment string) (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.data)) {
		if strings.Contains(name, "/"+segment+"/") {
			names = append(names, name)
		}
	}
	return names
}

// segments returns those that have a manifest.
func (b *blobs) segments() (names []string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, name := range slices.Sorted(maps.Keys(b.data)) {
		if rest, ok := strings.CutPrefix(name, "idx/segments/"); ok {
			names = append(names, strings.TrimSuffix(rest, "/meta.json"))
		}
	}
	return names
}

// window is how an instance sees the blobs.
type window struct {
	*blobs
	*gate                           // of requests
	read  func(shard string, n int) // bytes of chunks of a shard

	mu      sync.Mutex
	latency time.Duration
	err     error
}

var _ source.Store = (*window)(nil)

func newWindow(b *blobs, latency time.Duration, read func(shard string, n int)) *window {
	return &window{blobs: b, gate: newGate(), latency: latency, read: read}
}

// request waits as long as one takes.
func (w *window) request(ctx context.Context) error {
	w.mu.Lock()
	latency, err := w.latency, w.err
	w.mu.Unlock()
	select {
	case <-w.passage():
	case <-ctx.Done():
		return ctx.Err()
	}
	t := time.NewTimer(latency)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
		return ctx.Err()
	}
	return err
}

// List implements source.Store.
func (w *window) List(ctx context.Context, prefix, delimiter string) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		if err := w.request(ctx); err != nil {
			yield(source.Entry{}, err)
			return
		}
		var entries []source.Entry
		w.blobs.mu.Lock()
		for _, name := range slices.Sorted(maps.Keys(w.data)) {
			rest, ok := strings.CutPrefix(name, prefix)
			if !ok {
				continue
			}
			e := source.Entry{Name: name, Size: int64(len(w.data[name]))}
			if i := strings.Index(rest, "/"); delimiter != "" && i >= 0 {
				e = source.Entry{Name: prefix + rest[:i+1], IsPrefix: true}
			}
			if n := len(entries); n == 0 || entries[n-1] != e {
				entries = append(entries, e)
			}
		}
		w.blobs.mu.Unlock()
		for _, e := range entries {
			if !yield(e, nil) {
				return
			}
		}
	}
}

// ReadAt implements source.Store.
func (w *window) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	if err := w.request(ctx); err != nil {
		return 0, err
	}
	w.blobs.mu.Lock()
	data, ok := w.data[name]
	w.blobs.mu.Unlock()
	if !ok {
		return 0, source.ErrNotFound
	}
	n := copy(p, data[min(offset, int64(len(data))):])
	if rest, ok := strings.CutPrefix(name, "log/"); ok {
		w.read(rest[:2], n)
	}
	return n, nil
}

// behave sets how long a request takes, and what it fails with.
func (w *window) behave(latency time.Duration, err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.latency, w.err = latency, err
}
