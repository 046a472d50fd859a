package history

import (
	"context"
	"errors"
	"fmt"
	"math"
	"regexp"
	"strconv"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/resolved"
	"blobfeed/source"
)

// MaxInterval is the longest segment there is.
const MaxInterval = time.Hour

// Start says where to begin. It is resolved once, before the first read, and kept in the frontier: a restart before the
// first event does not move it.
type Start struct {
	latest bool
	at     envelope.Timestamp // zero: the earliest that the feed holds
}

// ParseStart parses earliest, latest, a time, or the text of an "updated".
func ParseStart(s string) (Start, error) {
	switch s {
	case "earliest", "":
		return Start{}, nil
	case "latest":
		return Start{latest: true}, nil
	}
	at, err := ParseTime(s)
	if err != nil && !errors.As(err, new(*rangeError)) {
		err = fmt.Errorf("%w, nor earliest or latest", err)
	}
	return Start{at: at}, err
}

// rangeError is a time that does not exist, is incomplete, or that an "updated" cannot express; or a segment.
type rangeError struct{ text, reason string }

func (e *rangeError) Error() string { return fmt.Sprintf("%q is no time: %s", e.text, e.reason) }

// outOfRange returns what is wrong with a text of which only a number did not parse; nil for other errors.
func outOfRange(text string, err error) error {
	if e, is := errors.AsType[*time.ParseError](err); is && strings.HasSuffix(e.Message, "out of range") {
		return &rangeError{text, "its " + strings.TrimSuffix(e.Message[2:], "out of range") + "is out of range"}
	}
	return nil
}

// wrongYear is what is wrong with a time that an "updated" cannot express.
const wrongYear = "its year is out of range: want 1970 to 2261"

// longYear matches a date that package time does not parse, since its year has more than four digits.
var longYear = regexp.MustCompile(`^\d{5,}[-/]\d\d[-/]\d\d`)

// distant reports whether a text is a time after the year 9999, or an "updated" of more nanoseconds than there are.
func distant(s string) bool {
	wall, _, _ := strings.Cut(s, ".")
	_, err := strconv.ParseInt(wall, 10, 64)
	return errors.Is(err, strconv.ErrRange) || longYear.MatchString(s)
}

// ParseTime parses an RFC 3339 time, a date, which is its first moment in UTC, or the text of an "updated".
func ParseTime(s string) (envelope.Timestamp, error) {
	for _, layout := range []string{time.RFC3339Nano, time.DateOnly} {
		t, err := time.Parse(layout, s)
		if err == nil && (t.Year() < 1970 || t.Year() > 2261) {
			return envelope.Timestamp{}, &rangeError{s, wrongYear}
		}
		if err == nil {
			return envelope.Timestamp{Wall: t.UnixNano()}, nil
		}
		if e := outOfRange(s, err); e != nil {
			return envelope.Timestamp{}, e
		}
	}
	if _, err := time.Parse(time.DateOnly, s[:min(len(s), len(time.DateOnly))]); err == nil {
		return envelope.Timestamp{}, &rangeError{s, "want seconds and a time zone, as in 2026-01-31T12:00:00Z"}
	}
	if at, err := envelope.ParseTimestamp(s); err == nil {
		return at, nil
	}
	if distant(s) {
		return envelope.Timestamp{}, &rangeError{s, wrongYear}
	}
	if seg, err := source.ParseSegment(s); err == nil && s != "" {
		return envelope.Timestamp{}, &rangeError{s, "it names a segment: write " + seg.Time().Format(time.RFC3339)}
	}
	return envelope.Timestamp{}, fmt.Errorf("%q is neither a time such as 2026-01-31T12:00:00Z or 2026-01-31, "+
		"nor the text of an \"updated\"", s)
}

// ParseEnd parses what ParseTime does. A time without a logical part is all of it: an event of just that time is before
// the end, as CockroachDB's "through" has it.
func ParseEnd(s string) (envelope.Timestamp, error) {
	at, err := ParseTime(s)
	if _, not := envelope.ParseTimestamp(s); not != nil && err == nil {
		at.Logical = math.MaxInt32
	}
	return at, err
}

// Resolve returns the time before which events are left out, and the segment after which to read: the one that holds
// the start may begin an interval before it, and the one before that may hold events of its first minutes. The clock
// chooses no segment by itself: those that are read are what the feed lists after that one.
func (s Start) Resolve(now time.Time) (start string, after source.Segment) {
	if s.latest {
		s.at = envelope.Timestamp{Wall: now.UnixNano()}
	}
	if s.at == (envelope.Timestamp{}) {
		return "", source.Segment{}
	}
	return s.at.String(), Before(s.at)
}

// Before returns the segment after which to read for events from start on; none for no start.
func Before(start envelope.Timestamp) source.Segment {
	if start == (envelope.Timestamp{}) {
		return source.Segment{}
	}
	return source.SegmentAt(time.Unix(0, start.Wall).Add(-MaxInterval - resolved.Slack - time.Minute))
}

// ParseStored parses a time of the frontier; "" is zero.
func ParseStored(s string) (envelope.Timestamp, error) {
	if s == "" {
		return envelope.Timestamp{}, nil
	}
	return envelope.ParseTimestamp(s)
}

// Oldest returns the time of the first event that a first start would read.
func (h *History) Oldest(ctx context.Context, from Start, now time.Time) (at time.Time, ok bool, err error) {
	start, after := from.Resolve(now)
	seg, ok, err := h.Next(ctx, after)
	if !ok || err != nil {
		return time.Time{}, false, err
	}
	ts, err := ParseStored(start)
	return time.Unix(0, max(ts.Wall, seg.Time().UnixNano())), err == nil, err
}

// Readable returns an error if a first start could not read the feed: how far it reaches, and, unless the start scans
// the account first, which segment is the first, its manifest, and the chunks of a shard. A feed may have no segment
// yet.
func (h *History) Readable(ctx context.Context, from Start, scans bool, now time.Time) error {
	last, err := h.feed.LastConsumable(ctx)
	if err != nil || last.IsZero() || scans {
		return err
	}
	_, after := from.Resolve(now)
	seg, ok, err := h.Next(ctx, after)
	if err != nil || !ok {
		return err
	}
	m, err := h.feed.Manifest(ctx, seg)
	if err != nil || len(m.Shards) == 0 {
		return err
	}
	return h.feed.Shard(m, m.Shards[0], source.ShardPosition{}).Poll(ctx, m.Finalized)
}
