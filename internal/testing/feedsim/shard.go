package feedsim

import (
	"bytes"
	"compress/flate"
	"fmt"
)

// flushAt is when blocks that wait in memory are written.
const flushAt = 1 << 20

// shard is one of the open segment's, and the chunk that it is at.
type shard struct {
	number  int
	dir     string
	chunk   int
	version *version
	late    bool   // neither in the manifest nor in the sink before Reveal
	headed  bool   // the chunk has its header, at least in buf
	size    int64  // of the chunk up to the last whole block, buf included: where the next block begins
	buf     []byte // not in the sink yet
	count   int    // events of the block that is not cut yet
	start   int    // where it begins in buf
	raw     []byte // its records, if they are to be compressed
}

func shardDir(number int, segment string) string { return fmt.Sprintf("log/%02d/%s/", number, segment) }

func (s *shard) path() string { return fmt.Sprintf("%s%05d.avro", s.dir, s.chunk) }

func (s *shard) inBlock() bool { return s.count > 0 }

// head begins the chunk, if it is not begun.
func (f *Feed) head(s *shard) {
	if s.headed {
		return
	}
	s.headed, s.size = true, int64(len(s.version.header))
	s.buf = append(s.buf, s.version.header...)
	f.sum.Chunks++
}

// startBlock leaves room for the count and the size.
func (s *shard) startBlock(compressed bool) {
	s.start = len(s.buf)
	s.buf = append(s.buf, make([]byte, 2*longLen)...)
	if compressed {
		s.raw = s.raw[:0]
	}
}

// cut ends the block.
func (f *Feed) cut(s *shard) error {
	if !s.inBlock() {
		return nil
	}
	if f.spec.Deflate {
		var err error
		if s.buf, err = f.deflate(s.buf, s.raw); err != nil {
			return fmt.Errorf("compressing a block of %s: %w", s.path(), err)
		}
	}
	data := s.start + 2*longLen
	putLong(s.buf[s.start:], int64(s.count))
	putLong(s.buf[s.start+longLen:], int64(len(s.buf)-data))
	s.buf = append(s.buf, syncMarker...)
	s.size += int64(len(s.buf) - s.start)
	s.count = 0
	f.sum.Blocks++
	return nil
}

// deflate appends raw to dst, compressed.
func (f *Feed) deflate(dst, raw []byte) ([]byte, error) {
	out := bytes.NewBuffer(dst)
	if f.flate == nil {
		var err error
		if f.flate, err = flate.NewWriter(out, flate.BestSpeed); err != nil {
			return dst, err
		}
	} else {
		f.flate.Reset(out)
	}
	if _, err := f.flate.Write(raw); err != nil {
		return dst, err
	}
	err := f.flate.Close()
	return out.Bytes(), err
}
