package envelope

import (
	"fmt"
	"strconv"
	"strings"
)

// Position is where an event stands in the feed. It identifies the event: any reader can tell one from another by it.
type Position struct {
	Segment string // 2020/05/27/1500
	Shard   string // 00
	Chunk   int
	Offset  int64 // of the block in the chunk
	Index   int   // in the block
}

// AppendText appends segment/shard/chunk/offset/index: 2020/05/27/1500/00/00000/1488/3.
func (p Position) AppendText(b []byte) []byte {
	b = append(append(append(b, p.Segment...), '/'), p.Shard...)
	b = append(b, '/')
	for floor := 10000; floor > 1 && p.Chunk < floor; floor /= 10 {
		b = append(b, '0')
	}
	b = append(strconv.AppendInt(b, int64(p.Chunk), 10), '/')
	b = append(strconv.AppendInt(b, p.Offset, 10), '/')
	return strconv.AppendInt(b, int64(p.Index), 10)
}

// String returns what AppendText appends.
func (p Position) String() string { return string(p.AppendText(nil)) }

// ParsePosition parses what String returns.
func ParsePosition(s string) (Position, error) {
	f := strings.Split(s, "/")
	if len(f) != 8 {
		return Position{}, fmt.Errorf("position %q: want segment/shard/chunk/offset/index", s)
	}
	chunk, err1 := strconv.Atoi(f[5])
	offset, err2 := strconv.ParseInt(f[6], 10, 64)
	index, err3 := strconv.Atoi(f[7])
	if err1 != nil || err2 != nil || err3 != nil {
		return Position{}, fmt.Errorf("position %q: want segment/shard/chunk/offset/index", s)
	}
	return Position{Segment: strings.Join(f[:4], "/"), Shard: f[4], Chunk: chunk, Offset: offset, Index: index}, nil
}
