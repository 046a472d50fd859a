package pipeline

import (
	"testing"

	"blobfeed/source/inventory"
)

// All shards that read share one part of the memory, and a block that waits for its commit holds no events (I9).
func TestShardsShareMemory(t *testing.T) {
	const limit = 3 << 20
	p, d := simulated(t, limit, &lender{})
	alone := p.memory.window()
	run := p.start(t, d)
	b := <-run.Blocks
	if n := cap(b.events.Events); n != 0 || b.events.Memory != 0 || len(b.Records) == 0 {
		t.Errorf("a block of %d records holds an array of %d events", len(b.Records), n)
	}
	run.Close()
	p.Send(b, nil).Abandon()
	if got := p.memory.window(); alone != limit/2 || got != alone {
		t.Errorf("a window of %d bytes before and %d after a run, want %d", alone, got, limit/2)
	}
	for readers, want := range map[int64]int64{1: limit / 2, 4: limit / 8, 1000: minWindow} {
		p.memory.readers.Store(readers)
		if got := p.memory.window(); got != want {
			t.Errorf("%d readers: windows of %d bytes, want %d", readers, got, want)
		}
	}
}

// A run counts its shards while they read.
func TestRunCountsReaders(t *testing.T) {
	p, d := simulated(t, 1, &lender{}) // one block at a time, so no shard ends before its blocks are taken
	run := p.start(t, d)
	b := <-run.Blocks
	if got := p.memory.readers.Load(); got != int64(len(d.Manifest.Shards)) {
		t.Errorf("%d readers of %d shards", got, len(d.Manifest.Shards))
	}
	p.Send(b, nil).Abandon()
	run.Close()
	if got := p.memory.readers.Load(); got != 0 {
		t.Errorf("%d readers after the run", got)
	}
}

// A page is small where there is little memory, but not so small that a listing takes many times the requests.
func TestPagesShareMemory(t *testing.T) {
	for memory, want := range map[int]int{0: inventory.MaxPage, 20 << 20: 3000, 1: minPageBlobs} {
		got := New(Settings{MemoryBytes: memory}).PageBlobs(8)
		if got < want || got > want*5/4 {
			t.Errorf("%d bytes: pages of %d blobs, want about %d", memory, got, want)
		}
	}
}
