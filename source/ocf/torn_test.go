package ocf

import (
	"errors"
	"testing"

	"blobfeed/internal/testing/ceiling"
)

// FuzzChunk: what a block is does not depend on how much of the file is here. Cut anywhere, a header or block is either
// the same as in the whole, or short, or damage that the whole has as well: a reader of a growing file relies on it.
// Run it with -fuzzminimizetime 1x.
func FuzzChunk(f *testing.F) {
	for _, b := range chunks(f) {
		f.Add(b[:min(len(b), 6000)], uint16(3000))
	}
	f.Add(container("deflate", tiny, block(marker, 2, deflated(f, "\x02a\x02b"))), uint16(90))
	f.Add(container("null", tiny, block(marker, 0, ""), block(marker, 1, "\x02a")), uint16(110))
	f.Add(container("null", tiny,
		[]byte("\x82\x80\x80\x80\x80\x80\x80\x80\x80\x00\x84\x80\x80\x80\x80\x80\x80\x80\x80\x00\x02a"), marker),
		uint16(100))
	limits := Limits{Header: 1 << 14, Block: 1 << 14, Decompressed: 1 << 16}
	f.Fuzz(func(t *testing.T, b []byte, cut uint16) {
		ceiling.Hold(t, 64<<20, func() { torn(t, b, cut, limits) })
	})
}

func torn(t *testing.T, b []byte, cut uint16, limits Limits) {
	t.Helper()
	part := b[:min(int(cut), len(b))]
	whole, err := ParseHeader(b, limits)
	head, perr := ParseHeader(part, limits)
	same(t, err, perr)
	if err != nil {
		return
	}
	if perr == nil && (head.Size != whole.Size || head.Schema != whole.Schema || head.Sync != whole.Sync ||
		head.Codec != whole.Codec) {
		t.Fatal("the header of the part differs")
	}
	for off := whole.Size; off < int64(len(b)); {
		blk, err := whole.ReadBlock(b[off:], off)
		pblk, perr := whole.ReadBlock(part[min(off, int64(len(part))):], off)
		same(t, err, perr)
		if perr == nil && pblk != blk {
			t.Fatalf("block at %d: %+v in the part, %+v in the whole", off, pblk, blk)
		}
		if err != nil {
			return
		}
		if blk.Offset != off || blk.End < off+2+syncSize || blk.End > int64(len(b)) ||
			string(b[blk.End-syncSize:blk.End]) != string(whole.Sync[:]) {
			t.Fatalf("block at %d of %d: from %d to %d", off, len(b), blk.Offset, blk.End)
		}
		off = blk.End
		evs, err := whole.Events(blk, nil)
		var corrupt *CorruptError
		switch {
		case err == nil && len(evs) != blk.Count, len(evs) > blk.Count:
			t.Fatalf("%d events of %d", len(evs), blk.Count)
		case err != nil && (!errors.As(err, &corrupt) || corrupt.Offset != blk.Offset):
			t.Fatalf("error of no kind, or elsewhere than %d: %v", blk.Offset, err)
		}
	}
}

// same fails unless what the part says fits what the whole says.
func same(t *testing.T, whole, part error) {
	t.Helper()
	var of, corrupt *CorruptError
	switch {
	case errors.Is(part, ErrShort):
	case part == nil && whole == nil:
	case errors.As(part, &corrupt) && errors.As(whole, &of) && of.Offset == corrupt.Offset:
	default:
		t.Fatalf("the part says %v, the whole %v", part, whole)
	}
}
