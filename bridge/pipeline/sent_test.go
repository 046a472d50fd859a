package pipeline

import (
	"sync"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
)

// A block is free when each of its records is acknowledged and the sender is done with it, in any order.
func TestSent(t *testing.T) {
	p := New(Settings{MemoryBytes: 1 << 20})
	b := held(t, p, 2)
	s := p.Send(b, nil)
	for i := range 3 {
		if got, _, free := p.Use(); !got || free != 0 {
			t.Errorf("after %d of 3: held %t, %d free", i, got, free)
		}
		s.Done()
	}
	if got, _, free := p.Use(); got || free != 1 {
		t.Errorf("held %t, %d free", got, free)
	}
	next := held(t, p, 0)
	if next != b {
		t.Fatal("the block is not used again")
	}
	s.Abandon() // of the transaction before; the block is another's now
	if got, _, _ := p.Use(); !got {
		t.Error("the memory of a later block is given back")
	}
}

// A block that is given up is not used again, since a client may hold it, whether the brokers answer or not.
func TestSentAbandoned(t *testing.T) {
	p := New(Settings{MemoryBytes: 1 << 20})
	for range 100 {
		s := p.Send(held(t, p, 1), nil)
		s.Done()
		var both sync.WaitGroup
		both.Go(s.Done)
		both.Go(s.Abandon)
		both.Wait()
		if got, _, _ := p.Use(); got {
			t.Fatal("the memory is held")
		}
	}
	p = New(Settings{MemoryBytes: 1 << 20})
	s := p.Send(held(t, p, 1), nil)
	s.Abandon()
	s.Done()
	s.Done()
	if got, _, free := p.Use(); got || free != 0 {
		t.Errorf("held %t, %d free", got, free)
	}
}

// held returns a block of records that holds memory.
func held(t *testing.T, p *Pipeline, records int) *Block {
	t.Helper()
	b := p.pool.get(0)
	b.Records = make([]kgo.Record, records, records+1)
	if err := p.memory.acquire(t.Context(), b); err != nil {
		t.Fatal(err)
	}
	return b
}
