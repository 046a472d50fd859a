package source

import (
	"fmt"
	"time"
)

// Segment names a segment by its begin, to the minute. The zero value is before all segments. It is comparable with ==.
type Segment struct{ minute int64 } // minutes since 1600, so that the zero value is before the year 1601

const segmentLayout = "2006/01/02/1504"

var segmentEpoch = time.Date(1600, 1, 1, 0, 0, 0, 0, time.UTC).Unix() / 60

// SegmentAt returns the segment that begins at t.
func SegmentAt(t time.Time) Segment { return Segment{floorMinute(t) - segmentEpoch} }

func floorMinute(t time.Time) int64 { return (t.Unix() - int64(t.Second())) / 60 }

// ParseSegment parses YYYY/MM/DD/HHMM. "" is the zero value.
func ParseSegment(s string) (Segment, error) {
	if s == "" {
		return Segment{}, nil
	}
	t, err := time.Parse(segmentLayout, s)
	if err != nil || t.Format(segmentLayout) != s || t.Year() < 1601 {
		return Segment{}, fmt.Errorf("segment %q: want YYYY/MM/DD/HHMM", s)
	}
	return SegmentAt(t), nil
}

// Time returns the begin of the segment.
func (s Segment) Time() time.Time { return time.Unix((s.minute+segmentEpoch)*60, 0).UTC() }

// Before returns a name before seg and after every earlier segment: those after it begin with seg.
func Before(seg Segment) Segment {
	if seg == (Segment{}) {
		return seg
	}
	return Segment{seg.minute - 1}
}

// AppendText appends YYYY/MM/DD/HHMM, as in the feed's paths, or nothing for the zero value.
func (s Segment) AppendText(b []byte) ([]byte, error) {
	if s == (Segment{}) {
		return b, nil
	}
	t := s.Time()
	year, month, day := t.Date()
	b = append(appendTwo(appendTwo(b, year/100), year%100), '/')
	b = append(appendTwo(b, int(month)), '/')
	b = append(appendTwo(b, day), '/')
	return appendTwo(appendTwo(b, t.Hour()), t.Minute()), nil
}

func appendTwo(b []byte, n int) []byte { return append(b, byte('0'+n/10), byte('0'+n%10)) }

// String returns what AppendText appends.
func (s Segment) String() string {
	b, _ := s.AppendText(nil)
	return string(b)
}

// Compare orders segments by time.
func (s Segment) Compare(o Segment) int {
	switch {
	case s.minute < o.minute:
		return -1
	case s.minute > o.minute:
		return 1
	}
	return 0
}

// MarshalText implements encoding.TextMarshaler.
func (s Segment) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Segment) UnmarshalText(b []byte) (err error) {
	*s, err = ParseSegment(string(b))
	return err
}
