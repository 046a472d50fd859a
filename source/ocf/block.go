package ocf

import (
	"bytes"
	"compress/flate"
	"fmt"
	"io"
	"strings"
	"sync"
)

// Block is a whole block of a file, its data decompressed.
type Block struct {
	Offset, End int64 // in the file; End is just after the sync marker, where a reader can resume
	Count       int   // records
	Data        string
}

// ReadBlock reads the block at file offset off, where b begins. It returns ErrShort if b ends inside it.
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
	if n == 0 || m == 0 {
		return Block{}, ErrShort
	}
	if size < 0 || size > int64(h.limits.Block) {
		return corrupt(fmt.Sprintf("the block's size is %d, the limit %d", size, h.limits.Block), nil)
	}
	data := b[n+m:]
	if int64(len(data)) < size+syncSize {
		return Block{}, ErrShort
	}
	if !bytes.Equal(data[size:size+syncSize], h.Sync[:]) {
		return corrupt(fmt.Sprintf("no sync marker at offset %d", off+int64(n+m)+size), nil)
	}
	blk := Block{Offset: off, End: off + int64(n+m) + size + syncSize}
	if h.Codec == "null" {
		blk.Data = string(data[:size]) // one copy: strings of events are parts of it, and b can be reused
	} else {
		var err error
		if blk.Data, err = inflate(data[:size], h.limits.Decompressed); err != nil {
			return corrupt("decompressing the block", err)
		}
	}
	// A record of our plans takes a byte at least, so a count above the size is a lie, and would be a long loop.
	if count > int64(len(blk.Data)) {
		return corrupt(fmt.Sprintf("%d records in %d bytes", count, len(blk.Data)), nil)
	}
	blk.Count = int(count)
	return blk, nil
}

// Events decodes all records of b into evs[:0]. Those before a damaged one are returned together with the error.
func (h *Header) Events(b Block, evs []Event) ([]Event, error) {
	evs = evs[:0]
	r := &reader{b.Data}
	for i := range b.Count {
		if len(evs) < cap(evs) {
			evs = evs[:i+1]
		} else {
			evs = append(evs, Event{})
		}
		if err := h.Plan.decode(r, &evs[i]); err != nil {
			return evs[:i], &CorruptError{Offset: b.Offset, Reason: fmt.Sprintf("decoding record %d of the block", i), Err: err}
		}
	}
	if r.s != "" {
		return evs, &CorruptError{Offset: b.Offset, Reason: fmt.Sprintf("%d bytes after the last record of the block", len(r.s))}
	}
	return evs, nil
}

type inflater struct {
	src bytes.Reader
	r   io.ReadCloser
	out strings.Builder
}

var inflaters = sync.Pool{New: func() any { return &inflater{r: flate.NewReader(nil)} }}

func inflate(b []byte, limit int) (string, error) {
	f := inflaters.Get().(*inflater)
	defer inflaters.Put(f)
	f.src.Reset(b)
	if err := f.r.(flate.Resetter).Reset(&f.src, nil); err != nil {
		return "", err
	}
	f.out = strings.Builder{} // the string of the last block belongs to its events
	n, err := io.Copy(&f.out, io.LimitReader(f.r, int64(limit)+1))
	if err != nil {
		return "", err
	}
	if n > int64(limit) {
		return "", fmt.Errorf("above the limit of %d bytes", limit)
	}
	return f.out.String(), nil
}
