package source

import (
	"fmt"
	"strings"
	"time"
)

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
