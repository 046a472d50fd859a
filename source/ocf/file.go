package ocf

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"unsafe"
)

// Limits bound what one file may make us allocate, in bytes. Zero means the default.
type Limits struct {
	Header       int // 1 MiB; real ones are below 3 KiB
	Block        int // 64 MiB; real ones are below 68 KiB
	Decompressed int // 64 MiB, of one block; and as much for the events that it decodes to
}

var defaults = Limits{Header: 1 << 20, Block: 64 << 20, Decompressed: 64 << 20}

func (l Limits) withDefaults() Limits {
	set := func(v *int, to int) {
		if *v <= 0 {
			*v = to
		}
	}
	set(&l.Header, defaults.Header)
	set(&l.Block, defaults.Block)
	set(&l.Decompressed, defaults.Decompressed)
	return l
}

// ErrShort says that the bytes end inside a header or block. In a file that still grows that is normal.
var ErrShort = errors.New("the data ends inside a header or block")

// CorruptError is damage: more bytes won't help.
type CorruptError struct {
	Offset int64 // in the file, of the header (0) or the block
	Reason string
	Err    error // may be nil
}

func (e *CorruptError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("corrupt at offset %d: %s: %v", e.Offset, e.Reason, e.Err)
	}
	return fmt.Sprintf("corrupt at offset %d: %s", e.Offset, e.Reason)
}

func (e *CorruptError) Unwrap() error { return e.Err }

const syncSize = 16

// Header is the beginning of a file.
type Header struct {
	Codec  string // "null" or "deflate"
	Schema string // writer schema, JSON
	Sync   [syncSize]byte
	Size   int64 // bytes of the header: the offset of the first block
	Plan   *Plan
	limits Limits
}

var magic = []byte("Obj\x01")

// ParseHeader reads the header of a file from its first bytes. It returns ErrShort if they end inside it.
func ParseHeader(b []byte, limits Limits) (*Header, error) {
	limits = limits.withDefaults()
	if n := min(len(b), len(magic)); !bytes.Equal(b[:n], magic[:n]) {
		return nil, &CorruptError{Reason: "not an Avro container: the magic is wrong"}
	}
	if len(b) > limits.Header {
		b = b[:limits.Header]
	}
	h := &Header{Codec: "null", limits: limits}
	rest, err := h.metadata(b)
	if errors.Is(err, ErrShort) && len(b) == limits.Header {
		return nil, &CorruptError{Reason: fmt.Sprintf("the header exceeds the limit of %d bytes", limits.Header)}
	}
	if err != nil {
		return nil, err
	}
	copy(h.Sync[:], rest)
	h.Size = int64(len(b) - len(rest) + syncSize)
	if h.Codec != "null" && h.Codec != "deflate" {
		return nil, &CorruptError{Reason: fmt.Sprintf("codec %q is not supported; null and deflate are", clip(h.Codec))}
	}
	if h.Plan, err = planOf(h.Schema); err != nil {
		return nil, &CorruptError{Reason: "reading the schema", Err: err}
	}
	return h, nil
}

// metadata reads the map after the magic and returns what follows, which is at least a sync marker.
func (h *Header) metadata(b []byte) ([]byte, error) {
	if len(b) < len(magic) {
		return nil, ErrShort
	}
	b = b[len(magic):]
	for {
		count, n := long(b)
		if n <= 0 {
			return nil, shortOr(n, "metadata count")
		}
		b = b[n:]
		if count == 0 {
			if len(b) < syncSize {
				return nil, ErrShort
			}
			return b, nil
		}
		if count < 0 { // then the size of the block in bytes follows
			if _, n = long(b); n <= 0 {
				return nil, shortOr(n, "metadata size")
			}
			b = b[n:]
			count = -count
		}
		if count < 0 || count > int64(h.limits.Header) {
			return nil, &CorruptError{Reason: "metadata count is impossible"}
		}
		for range count {
			var kv [2][]byte
			for i := range kv {
				size, n := long(b)
				if n <= 0 {
					return nil, shortOr(n, "metadata length")
				}
				if size < 0 || size > int64(h.limits.Header) {
					return nil, &CorruptError{Reason: "metadata length is impossible"}
				}
				if b = b[n:]; int64(len(b)) < size {
					return nil, ErrShort
				}
				kv[i], b = b[:size], b[size:]
			}
			switch string(kv[0]) {
			case "avro.codec":
				h.Codec = string(kv[1])
			case "avro.schema":
				h.Schema = string(kv[1])
			}
		}
	}
}

func shortOr(n int, what string) error {
	if n < 0 {
		return &CorruptError{Reason: what, Err: errVarint}
	}
	return ErrShort
}

// clip keeps errors short: names come from the file and may be as long as the file.
func clip(name string) string {
	if len(name) > 64 {
		return name[:64] + "..."
	}
	return name
}

// maxRecords bounds the events of one block, which take eventCost each whatever their data. Real blocks have 120.
const maxRecords = 1 << 18

// Block is a whole block of a file, its data decompressed.
type Block struct {
	Offset, End int64 // in the file; End is just after the sync marker, where a reader can resume
	Count       int   // records
	Data        string
}

// Clone returns the block with data of its own.
func (b Block) Clone() Block {
	b.Data = strings.Clone(b.Data)
	return b
}

// ReadBlock reads the block at file offset off, where b begins. It returns ErrShort if b ends inside it. The data of a
// block that is not compressed is a part of b, and so are the strings of its events: they are valid while b stays as it
// is.
func (h *Header) ReadBlock(b []byte, off int64) (Block, error) {
	corrupt := func(reason string, err error) (Block, error) {
		return Block{}, &CorruptError{Offset: off, Reason: reason, Err: err}
	}
	count, n := long(b)
	if n < 0 {
		return corrupt("reading the block's count", errVarint)
	}
	if n > 0 && count < 0 {
		return corrupt(fmt.Sprintf("the block's count is %d", count), nil)
	}
	size, m := int64(0), 0
	if n > 0 {
		if size, m = long(b[n:]); m < 0 {
			return corrupt("reading the block's size", errVarint)
		}
	}
	// Damage is reported as soon as it shows, also in a torn tail. Otherwise the reader would wait for more bytes
	// forever.
	if n > 0 && count > maxRecords {
		return corrupt(fmt.Sprintf("the block's count is %d, the limit %d", count, maxRecords), nil)
	}
	if n == 0 || m == 0 {
		return Block{}, ErrShort
	}
	if size < 0 || size > int64(h.limits.Block) {
		return corrupt(fmt.Sprintf("the block's size is %d, the limit %d", size, h.limits.Block), nil)
	}
	tooMany := func(bytes int64) bool { return count > bytes && !h.Plan.empty } // a record takes a byte at least
	if h.Codec == "null" && tooMany(size) {
		return corrupt(fmt.Sprintf("%d records in %d bytes", count, size), nil)
	}
	data := b[n+m:]
	if int64(len(data)) > size {
		marker := data[size:min(int64(len(data)), size+syncSize)]
		if !bytes.Equal(marker, h.Sync[:len(marker)]) {
			return corrupt(fmt.Sprintf("no sync marker at offset %d", off+int64(n+m)+size), nil)
		}
	}
	if int64(len(data)) < size+syncSize {
		return Block{}, ErrShort
	}
	blk := Block{Offset: off, End: off + int64(n+m) + size + syncSize}
	if h.Codec == "null" {
		blk.Data = unsafe.String(unsafe.SliceData(data), size)
	} else {
		var err error
		if blk.Data, err = inflate(data[:size], h.limits.Decompressed); err != nil {
			return corrupt("decompressing the block", err)
		}
	}
	if tooMany(int64(len(blk.Data))) {
		return corrupt(fmt.Sprintf("%d records in %d bytes", count, len(blk.Data)), nil)
	}
	blk.Count = int(count)
	return blk, nil
}

// Events decodes all records of b into evs[:0]. Those before a damaged one are returned together with the error.
func (h *Header) Events(b Block, evs []Event) ([]Event, error) {
	evs, _, err := h.Decode(b, evs)
	return evs, err
}

// Decode is Events. It also returns the approximate bytes of memory of the block and its events.
func (h *Header) Decode(b Block, evs []Event) (_ []Event, memory int, err error) {
	r := newReader(b.Data, h.limits.Decompressed)
	all := r.budget
	evs, err = h.decode(&r, b, evs)
	return evs, len(b.Data) + len(evs)*eventCost + all - r.budget, err
}

func (h *Header) decode(r *reader, b Block, evs []Event) ([]Event, error) {
	evs = evs[:0]
	if need := b.Count * eventCost; need > max(h.limits.Decompressed, 1<<20) {
		return evs, &CorruptError{Offset: b.Offset, Err: errBudget,
			Reason: fmt.Sprintf("%d records take %d bytes of memory, the limit is %d", b.Count, need,
				h.limits.Decompressed)}
	}
	evs = slices.Grow(evs, b.Count)
	for i := range b.Count {
		evs = evs[:i+1]
		if err := h.Plan.decode(r, &evs[i]); err != nil {
			return evs[:i], &CorruptError{Offset: b.Offset, Reason: fmt.Sprintf("decoding record %d of the block", i),
				Err: err}
		}
	}
	if left := len(r.rest()); left > 0 {
		return evs, &CorruptError{Offset: b.Offset, Reason: fmt.Sprintf("%d bytes after the last record of the block",
			left)}
	}
	return evs, nil
}

type inflater struct {
	src bytes.Reader
	r   io.ReadCloser
	out bytes.Buffer
}

var inflaters = sync.Pool{New: func() any { return &inflater{r: flate.NewReader(nil)} }}

// keep is the largest buffer that waits in the pool for another block.
const keep = 1 << 20

func inflate(b []byte, limit int) (string, error) {
	f := inflaters.Get().(*inflater)
	defer func() {
		f.src.Reset(nil) // the pool must not hold the caller's bytes
		if f.out.Reset(); f.out.Cap() > keep {
			f.out = bytes.Buffer{}
		}
		inflaters.Put(f)
	}()
	f.src.Reset(b)
	if err := f.r.(flate.Resetter).Reset(&f.src, nil); err != nil {
		return "", err
	}
	n, err := f.out.ReadFrom(io.LimitReader(f.r, int64(limit)+1))
	if err != nil {
		return "", err
	}
	if n > int64(limit) {
		return "", fmt.Errorf("exceeds the limit of %d bytes", limit)
	}
	if f.src.Len() > 0 {
		return "", fmt.Errorf("%d bytes follow the compressed data", f.src.Len())
	}
	return f.out.String(), nil
}
