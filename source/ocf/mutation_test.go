package ocf

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"runtime/metrics"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
)

var (
	mutationCount = flag.Int("mutations", 10_000, "how many mutated chunks to read")
	mutationSeed  = flag.Uint64("mutation-seed", rand.Uint64(), "seed of the mutations, as a failed run printed it")
)

// Of what is read of a mutated chunk, limits bound the memory. Real headers are below 3 KiB, real blocks below 68 KiB.
var mutationLimits = Limits{Header: 16 << 10, Block: 128 << 10, Decompressed: 256 << 10}

// mutationCap is what reading one chunk may allocate: an event is 440 bytes and takes 17 bytes of a block at least in
// the schemas here, which is a factor of 26; it is doubled by slices that grow. The schema's plan comes on top.
func mutationCap(b []byte, deflate bool) uint64 {
	data := len(b)
	if deflate {
		data += mutationLimits.Decompressed
	}
	return 1<<20 + 64*uint64(data)
}

// intact is a chunk before it is mutated.
type intact struct {
	name   string
	bytes  []byte
	header *Header
	blocks []Block
	events [][]Event // by block
}

// intacts are the real chunks, and chunks of what these do not have: later schemas, maps in use, a codec.
func intacts(t *testing.T) (all []*intact) {
	t.Helper()
	real := chunks(t)
	for _, name := range slices.Sorted(maps.Keys(real)) {
		all = append(all, &intact{name: name, bytes: real[name]})
	}
	rng := rand.New(rand.NewPCG(5, 6))
	for _, v := range versions {
		o := newOracle(t, schemaText(t, v))
		var plain, packed [][]byte
		for range 6 {
			var data bytes.Buffer
			for range 5 {
				data.Write(o.encode(t, random(rng, o.schema)))
			}
			plain = append(plain, block(marker, 5, data.String()))
			packed = append(packed, block(marker, 5, deflated(t, data.String())))
		}
		all = append(all, &intact{name: v, bytes: container("null", o.text, plain...)},
			&intact{name: v + ", deflate", bytes: container("deflate", o.text, packed...)})
	}
	for _, c := range all {
		var err error
		if c.header, err = ParseHeader(c.bytes, mutationLimits); err != nil {
			t.Fatalf("%s: %v", c.name, err)
		}
		for off := c.header.Size; off < int64(len(c.bytes)); {
			blk, err := c.header.ReadBlock(c.bytes[off:], off)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			evs, err := c.header.Events(blk, nil)
			if err != nil {
				t.Fatalf("%s: %v", c.name, err)
			}
			c.blocks, c.events, off = append(c.blocks, blk), append(c.events, evs), blk.End
		}
	}
	return all
}

// mutate returns b with some damage, most often one: flipped bits, other bytes, an end that is missing, bytes too many
// or too few, and parts of other chunks.
func mutate(rng *rand.Rand, b []byte, others []*intact) []byte {
	b = bytes.Clone(b)
	for range 1 + rng.IntN(10)/9 + rng.IntN(10)/9 {
		if len(b) == 0 {
			return b
		}
		at := rng.IntN(len(b))
		if rng.IntN(4) == 0 { // where the header is, too: it is a small part of most
			at = rng.IntN(min(len(b), 3000))
		}
		n := 1 + rng.IntN(min(len(b)-at, 1<<rng.IntN(12)))
		switch rng.IntN(7) {
		case 0, 1:
			b[at] ^= 1 << rng.IntN(8)
		case 2:
			for i := range b[at : at+min(n, 8)] {
				b[at+i] = byte(rng.Uint32())
			}
		case 3:
			b = b[:at]
		case 4:
			more := make([]byte, n)
			for i := range more {
				more[i] = byte(rng.Uint32())
			}
			b = slices.Insert(b, at, more...)
		case 5:
			b = slices.Delete(b, at, at+n)
		case 6:
			from := others[rng.IntN(len(others))].bytes
			from = from[rng.IntN(len(from)):]
			part := from[:min(n, len(from))]
			if rng.IntN(2) == 0 {
				b = slices.Insert(b, at, part...)
			} else {
				copy(b[at:], part)
			}
		}
	}
	return b
}

// common returns how many bytes at the beginning are the same.
func common(a, b []byte) int {
	n := 0
	for n < min(len(a), len(b)) && a[n] == b[n] {
		n++
	}
	return n
}

// A damaged chunk gives the right events up to the damage. Then comes an error that names where the reader is, or what
// the bytes say now, if they still say something. It never panics, and takes no more memory than the limits allow.
func TestChunkMutations(t *testing.T) {
	t.Logf("go test ./source/ocf -run TestChunkMutations -mutations %d -mutation-seed %d", *mutationCount,
		*mutationSeed)
	all := intacts(t)
	var next, whole, short, corrupt atomic.Int64
	var alone sync.RWMutex // who measures the memory of one attempt exactly is alone
	attempt := func(i int64) error {
		rng := rand.New(rand.NewPCG(*mutationSeed, uint64(i)))
		c := all[rng.IntN(len(all))]
		b := mutate(rng, c.bytes, all)
		limit := mutationCap(b, c.header.Codec == "deflate")
		var outcome *atomic.Int64
		var err error
		read := func() { outcome, err = c.check(b, &whole, &short, &corrupt) }
		alone.RLock()
		took := heapAllocated(read)
		alone.RUnlock()
		if err == nil && took > limit { // perhaps the others took it
			alone.Lock()
			took = allocated(read)
			alone.Unlock()
			if took > limit {
				err = fmt.Errorf("%d bytes allocated for %d bytes, the limit is %d", took, len(b), limit)
			}
		}
		if err != nil {
			return fmt.Errorf("attempt %d, %s, damaged from byte %d on: %w", i, c.name, common(b, c.bytes), err)
		}
		outcome.Add(1)
		return nil
	}
	var workers sync.WaitGroup
	for range 2 {
		workers.Go(func() {
			for i := next.Add(1); i <= int64(*mutationCount) && !t.Failed(); i = next.Add(1) {
				if err := attempt(i); err != nil {
					t.Error(err)
				}
			}
		})
	}
	workers.Wait()
	t.Logf("%d read to the end, %d short, %d corrupt", whole.Load(), short.Load(), corrupt.Load())
	if *mutationCount >= 1000 && (whole.Load() == 0 || short.Load() == 0 || corrupt.Load() == 0) {
		t.Error("one of the outcomes never came")
	}
}

// check reads b, which was c, and returns which outcome to count.
func (c *intact) check(b []byte, whole, short, corrupt *atomic.Int64) (outcome *atomic.Int64, err error) {
	first := int64(common(b, c.bytes))
	h := c.header
	if first < h.Size || first%8 == 0 { // else it is the same, and to parse it is most of the time
		if h, err = ParseHeader(b, mutationLimits); err != nil && first >= c.header.Size {
			return nil, fmt.Errorf("the header is before the damage: %w", err)
		} else if err != nil {
			return classified(err, 0, short, corrupt)
		}
	}
	i, off := 0, h.Size
	for ; off < int64(len(b)); i++ {
		before := first >= c.header.Size && i < len(c.blocks) && c.blocks[i].End <= first
		blk, err := h.ReadBlock(b[off:], off)
		var evs []Event
		if err == nil {
			evs, err = h.Events(blk, nil)
		}
		switch {
		case before && err != nil:
			return nil, fmt.Errorf("block %d is before the damage: %w", i, err)
		case before && (blk != c.blocks[i] || !reflect.DeepEqual(evs, c.events[i])):
			return nil, fmt.Errorf("block %d is before the damage, and differs", i)
		case err != nil:
			return classified(err, off, short, corrupt)
		case len(evs) != blk.Count || blk.End <= off || blk.End > int64(len(b)):
			return nil, fmt.Errorf("block %d at %d ends at %d and has %d events of %d", i, off, blk.End, len(evs),
				blk.Count)
		}
		off = blk.End
	}
	for _, blk := range c.blocks[min(i, len(c.blocks)):] {
		if first >= c.header.Size && blk.End <= first {
			return nil, fmt.Errorf("the block at %d is before the damage, and missing", blk.Offset)
		}
	}
	return whole, nil
}

// classified refuses an error that does not tell more bytes from damage, or damage that is not named where the reader
// is.
func classified(err error, off int64, short, corrupt *atomic.Int64) (*atomic.Int64, error) {
	var damage *CorruptError
	switch {
	case errors.Is(err, ErrShort) && !errors.As(err, &damage):
		return short, nil
	case errors.As(err, &damage) && damage.Offset == off && bytes.Contains([]byte(err.Error()),
		fmt.Appendf(nil, "offset %d", off)):
		return corrupt, nil
	}
	return nil, fmt.Errorf("the reader is at %d, the error: %w", off, err)
}

// heapAllocated returns about what f and all others allocate while it runs. Unlike allocated it stops nobody.
func heapAllocated(f func()) uint64 {
	sample := []metrics.Sample{{Name: "/gc/heap/allocs:bytes"}}
	metrics.Read(sample)
	before := sample[0].Value.Uint64()
	f()
	metrics.Read(sample)
	return sample[0].Value.Uint64() - before
}
