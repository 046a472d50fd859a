package feedsim

import (
	"context"
	"math/rand/v2"
	"strings"
)

// Tear is a Sink that cuts what is appended anywhere, in headers and blocks, and keeps the rest back until the next
// append to the blob: a reader sees half blocks for as long as that takes. What is kept back is written before a blob
// is put that is rewritten in place, and before another chunk of the shard: those say that it is there. It is for one
// goroutine.
type Tear struct {
	sink  Sink
	rng   *rand.Rand
	names []string // with something in rest, in the order of the appends
	rest  map[string][]byte
}

var _ Sink = (*Tear)(nil)

// NewTear returns a Tear in front of sink.
func NewTear(sink Sink, seed uint64) *Tear {
	return &Tear{sink: sink, rng: rand.New(rand.NewPCG(seed, 3)), rest: map[string][]byte{}}
}

// Put implements Sink.
func (t *Tear) Put(ctx context.Context, name string, data []byte) error {
	if err := t.Flush(ctx); err != nil {
		return err
	}
	return t.sink.Put(ctx, name, data)
}

// Append implements Sink. It writes a part of what is due, perhaps nothing, perhaps all.
func (t *Tear) Append(ctx context.Context, name string, data []byte) error {
	dir := name[:strings.LastIndexByte(name, '/')+1]
	if err := t.write(ctx, func(n string) bool { return n != name && strings.HasPrefix(n, dir) }); err != nil {
		return err
	}
	data = append(t.rest[name], data...)
	if _, waits := t.rest[name]; !waits {
		t.names = append(t.names, name)
	}
	at := t.rng.IntN(len(data) + 1)
	t.rest[name] = data[at:]
	if at == 0 {
		return nil
	}
	return t.sink.Append(ctx, name, data[:at])
}

// Flush writes what was kept back.
func (t *Tear) Flush(ctx context.Context) error {
	return t.write(ctx, func(string) bool { return true })
}

// write writes the rest of the chosen blobs.
func (t *Tear) write(ctx context.Context, chosen func(name string) bool) error {
	kept := t.names[:0]
	for _, name := range t.names {
		if !chosen(name) {
			kept = append(kept, name)
			continue
		}
		rest := t.rest[name]
		delete(t.rest, name)
		if len(rest) == 0 {
			continue
		}
		if err := t.sink.Append(ctx, name, rest); err != nil {
			return err // the feed is of no use now
		}
	}
	t.names = kept
	return nil
}
