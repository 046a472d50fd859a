package ocf

import (
	"bytes"
	"errors"
	"fmt"
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
