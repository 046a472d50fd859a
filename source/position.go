package source

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// Position is where an event is in the feed. It identifies the event. It is comparable with ==.
type Position struct {
	Segment Segment
	Shard   int
	Chunk   int
	Offset  int64 // of the block in the chunk
	Index   int   // in the block
}

// AppendText appends segment/shard/chunk/offset/index: 2020/05/27/1500/00/00000/1488/3.
func (p Position) AppendText(b []byte) ([]byte, error) {
	b = appendPadded(append(append(b, p.Segment.name...), '/'), p.Shard, shardDigits)
	b = appendPadded(append(b, '/'), p.Chunk, chunkDigits)
	b = strconv.AppendInt(append(b, '/'), p.Offset, 10)
	return strconv.AppendInt(append(b, '/'), int64(p.Index), 10), nil
}

// String returns what AppendText appends.
func (p Position) String() string {
	b, _ := p.AppendText(nil)
	return string(b)
}

// ParsePosition parses what String returns.
func ParsePosition(s string) (Position, error) {
	wrong := fmt.Errorf("position %.100q: want segment/shard/chunk/offset/index", s)
	const segment = len(segmentLayout)
	if len(s) <= segment || s[segment] != '/' {
		return Position{}, wrong
	}
	seg, err := ParseSegment(s[:segment])
	fields := strings.Split(s[segment+1:], "/")
	if err != nil || len(fields) != 4 {
		return Position{}, wrong
	}
	var n [4]int64
	for i, f := range fields {
		if n[i], err = strconv.ParseInt(f, 10, 64); err != nil || !digits(f) {
			return Position{}, wrong
		}
	}
	return Position{Segment: seg, Shard: int(n[0]), Chunk: int(n[1]), Offset: n[2], Index: int(n[3])}, nil
}

// Compare orders positions: by segment, then shard, chunk, block and index. Between shards that is not the order of
// time: nothing but the events of one blob, which are in one shard of a segment, has an order.
func (p Position) Compare(o Position) int {
	return cmp.Or(p.Segment.Compare(o.Segment), cmp.Compare(p.Shard, o.Shard), cmp.Compare(p.Chunk, o.Chunk),
		cmp.Compare(p.Offset, o.Offset), cmp.Compare(p.Index, o.Index))
}

// ShardPosition is where to read on in a shard. Offset is 0 at the start of a chunk, else just after a block.
type ShardPosition struct {
	Chunk  int   `json:"chunk"`
	Offset int64 `json:"offset"`
}

// String returns chunk/offset: 00000/1488.
func (p ShardPosition) String() string { return fmt.Sprintf("%0*d/%d", chunkDigits, p.Chunk, p.Offset) }

// The feed pads the numbers of shards and chunks in its paths.
const shardDigits, chunkDigits = 2, 5

// ShardName returns the number of a shard as in the feed's paths: 00.
func ShardName(shard int) string { return string(appendPadded(nil, shard, shardDigits)) }

func chunkName(prefix string, chunk int) string {
	return string(appendPadded([]byte(prefix), chunk, chunkDigits)) + ".avro"
}

// appendPadded appends n with leading zeros.
func appendPadded(b []byte, n, width int) []byte {
	floor := 1
	for range width - 1 {
		floor *= 10
	}
	for ; floor > 1 && n < floor; floor /= 10 {
		b = append(b, '0')
	}
	return strconv.AppendInt(b, int64(n), 10)
}

// Segment names a segment by its begin, to the minute. The zero value is before all segments. It is comparable with ==.
type Segment struct {
	name string // as in the feed's paths: names sort like times
}

const (
	segmentLayout = "2006/01/02/1504"
	firstYear     = 1601 // of the service, and of a name
	lastYear      = 9999 // of a name
)

// SegmentAt returns the segment that begins at t.
func SegmentAt(t time.Time) Segment {
	switch t = t.UTC(); {
	case t.Year() < firstYear:
		return Segment{}
	case t.Year() > lastYear:
		t = time.Date(lastYear, 12, 31, 23, 59, 0, 0, time.UTC)
	}
	return Segment{t.Format(segmentLayout)}
}

// ParseSegment parses YYYY/MM/DD/HHMM. "" is the zero value.
func ParseSegment(s string) (Segment, error) {
	if s == "" {
		return Segment{}, nil
	}
	t, err := time.Parse(segmentLayout, s)
	if err != nil || t.Format(segmentLayout) != s || t.Year() < firstYear {
		return Segment{}, fmt.Errorf("segment %q: want YYYY/MM/DD/HHMM", s)
	}
	return SegmentAt(t), nil
}

// Time returns the begin of the segment.
func (s Segment) Time() time.Time {
	if s == (Segment{}) {
		return time.Date(firstYear-1, 1, 1, 0, 0, 0, 0, time.UTC)
	}
	t, _ := time.Parse(segmentLayout, s.name) // a name that SegmentAt has made
	return t
}

// Before returns a name before seg and after every earlier segment: those after it begin with seg.
func Before(seg Segment) Segment { return SegmentAt(seg.Time().Add(-time.Minute)) }

// String returns YYYY/MM/DD/HHMM, as in the feed's paths, or "" for the zero value.
func (s Segment) String() string { return s.name }

// Compare orders segments by time.
func (s Segment) Compare(o Segment) int { return strings.Compare(s.name, o.name) }

// MarshalText implements encoding.TextMarshaler.
func (s Segment) MarshalText() ([]byte, error) { return []byte(s.name), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Segment) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSegment(string(b))
	return err
}
