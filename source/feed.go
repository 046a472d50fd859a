package source

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"blobfeed/source/ocf"
)

// Event is one record of the feed.
type Event = ocf.Event

// Options tune a Feed. The zero value is fine.
type Options struct {
	ReadSize int64      // bytes of one ranged read; 4 MiB
	Limits   ocf.Limits // of one chunk's header and blocks
	Copy     bool       // the store is a copy of the feed's container: what is missing may be in the container
}

// Feed reads one change feed. It is safe for concurrent use.
type Feed struct {
	store Store
	opt   Options
	began atomic.Bool // the feed has said how far it may be read
}

// New returns the feed in store.
func New(store Store, opt Options) *Feed {
	if opt.ReadSize <= 0 {
		opt.ReadSize = 4 << 20
	}
	return &Feed{store: store, opt: opt}
}

const (
	watermarkName = "meta/segments.json"
	segmentsRoot  = "idx/segments/"
	manifestName  = "/meta.json"
	container     = "$blobchangefeed/"
	maxDocument   = 1 << 20 // bytes of a JSON document: 20,000 shards
)

// LastConsumable returns the begin of the newest segment that may be read. It is zero until the feed says so, and an
// error if it has said so before and does not any more.
func (f *Feed) LastConsumable(ctx context.Context) (time.Time, error) {
	var doc struct {
		LastConsumable *time.Time `json:"lastConsumable"`
	}
	err := f.document(ctx, watermarkName, &doc)
	if errors.Is(err, ErrNotFound) {
		if f.opt.Copy {
			return time.Time{}, incomplete(watermarkName + " is missing")
		}
		if f.began.Load() {
			return time.Time{}, fmt.Errorf("%s is gone, which says how far the feed may be read", watermarkName) // I8
		}
		return time.Time{}, nil // the service creates the container some time before this blob
	}
	if err != nil {
		return time.Time{}, err
	}
	if doc.LastConsumable == nil {
		// Treating this as "not yet" would stop the feed silently (I8).
		return time.Time{}, fmt.Errorf("parsing %s: lastConsumable is missing", watermarkName)
	}
	f.began.Store(true)
	return *doc.LastConsumable, nil
}

// document reads a small JSON blob with one read, since the service may rewrite it between two.
func (f *Feed) document(ctx context.Context, name string, doc any) error {
	text := make([]byte, 4<<10) // real ones are below 1 KiB
	for {
		n, err := f.store.ReadAt(ctx, name, text, 0)
		if err != nil {
			return fmt.Errorf("reading %s: %w", name, err)
		}
		if n < len(text) {
			text = text[:n]
			break
		}
		if n > maxDocument {
			return fmt.Errorf("reading %s: it exceeds the limit of %d bytes", name, maxDocument)
		}
		text = make([]byte, min(4*n, maxDocument+1)) // one byte more shows that it exceeds the limit
	}
	if err := json.Unmarshal(bytes.TrimPrefix(text, []byte("\xef\xbb\xbf")), doc); err != nil {
		return fmt.Errorf("parsing %s: %w", name, err)
	}
	return nil
}

// Segments yields the segments after a given one, oldest first, up to the newest that may be read. It lists a year, a
// month and a day at a time, from the day of after, and only as far as the caller reads. Asking for the next segment
// usually costs one listing, and none if the feed has nothing newer.
func (f *Feed) Segments(ctx context.Context, after Segment) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		last, err := f.LastConsumable(ctx)
		if err != nil || last.IsZero() {
			if err != nil {
				yield(Segment{}, err)
			}
			return
		}
		bound := SegmentAt(last)
		if after.Compare(bound) >= 0 {
			return
		}
		none := true
		for seg, err := range f.between(ctx, after, bound) {
			none = false
			if !yield(seg, err) {
				return
			}
		}
		if none && f.opt.Copy {
			if err := f.hasIndex(ctx, bound); err != nil {
				yield(Segment{}, err)
			}
		}
	}
}

// between yields the segments after after and not after bound.
func (f *Feed) between(ctx context.Context, after, bound Segment) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		for _, prefix := range enclosing(after) {
			for seg, err := range f.walk(ctx, prefix, after, bound) {
				if !yield(seg, err) || err != nil {
					return
				}
			}
			if strings.HasPrefix(bound.String(), prefix) {
				return // everything outside the prefix is after the bound
			}
		}
	}
}

// Indexed yields all segments, oldest first, also those that may not be read yet.
func (f *Feed) Indexed(ctx context.Context) iter.Seq2[Segment, error] {
	return f.walk(ctx, "", Segment{}, SegmentAt(time.Date(9999, 12, 31, 23, 59, 0, 0, time.UTC)))
}

// enclosing returns the prefixes that hold seg, from its day up to all years.
func enclosing(seg Segment) []string {
	if seg == (Segment{}) {
		return []string{""}
	}
	path := seg.String()
	return []string{path[:len("2006/01/02/")], path[:len("2006/01/")], path[:len("2006/")], ""}
}

// depthOf a prefix below segmentsRoot: year, month, day, then the time of day.
const timeDepth = 3

// walk yields the segments below prefix, a path of whole components, that are after after and not after bound. It skips
// the component that after is in, which Segments has walked already.
func (f *Feed) walk(ctx context.Context, prefix string, after, bound Segment) iter.Seq2[Segment, error] {
	return func(yield func(Segment, error) bool) {
		depth := strings.Count(prefix, "/")
		for e, err := range f.store.List(ctx, segmentsRoot+prefix, "/") {
			if err != nil {
				yield(Segment{}, fmt.Errorf("listing %s%s: %w", segmentsRoot, prefix, err))
				return
			}
			path := strings.TrimPrefix(e.Name, segmentsRoot)
			name, ok := strings.CutSuffix(path, "/")
			// The service keeps an empty segment in the year 1601. A name without digits is not a segment.
			if !e.IsPrefix || !ok || !digits(name[len(prefix):]) || strings.HasPrefix(name, "1601") {
				continue
			}
			// Names sort like times.
			if a := after.String(); len(a) >= len(name) && name <= a[:len(name)] {
				continue
			}
			if b := bound.String(); name > b[:min(len(name), len(b))] {
				return
			}
			if depth < timeDepth {
				for seg, err := range f.walk(ctx, path, after, bound) {
					if !yield(seg, err) || err != nil {
						return
					}
				}
				if ctx.Err() != nil {
					yield(Segment{}, ctx.Err())
					return
				}
				continue
			}
			seg, err := ParseSegment(name)
			if err != nil {
				yield(Segment{}, fmt.Errorf("listing %s%s: %w", segmentsRoot, prefix, err))
				return
			}
			if seg.Compare(after) > 0 && !yield(seg, nil) {
				return
			}
		}
	}
}

func digits(s string) bool {
	for _, c := range []byte(s) {
		if c < '0' || c > '9' {
			return false
		}
	}
	return s != ""
}

// Store is a container of blobs, or a directory laid out like one. Names have no leading slash.
type Store interface {
	// List yields what begins with prefix, in the order of the names' bytes. With delimiter "/", names that have one
	// after the prefix are folded into one entry each, up to and with the delimiter.
	List(ctx context.Context, prefix, delimiter string) iter.Seq2[Entry, error]
	// ReadAt fills p with the bytes from offset on and returns how many. It returns fewer than len(p) without an error
	// only at the end of the blob, and none behind it. Of a blob that does not exist it says ErrNotFound.
	ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error)
}

// Entry is a line of a listing.
type Entry struct {
	Name     string
	Size     int64
	Modified time.Time // zero if the store does not say
	IsPrefix bool      // Name stands for all that begin with it
}

type busyKey struct{}

// WithBusy returns a context for requests to a Store, which call busy if the service is overloaded. A request is
// repeated all the same, so busy may be called several times, and the request may succeed.
func WithBusy(ctx context.Context, busy func()) context.Context {
	return context.WithValue(ctx, busyKey{}, busy)
}

// Busy is for a Store: the service has rejected a request of ctx because it is overloaded.
func Busy(ctx context.Context) {
	if busy, ok := ctx.Value(busyKey{}).(func()); ok {
		busy()
	}
}

var (
	// ErrNotFound is the error of a Store for a blob that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNoFeed is the error of a Store that is not the container of a feed: the feed was never enabled, or a directory
	// holds something else.
	ErrNoFeed = errors.New("there is no change feed")
)

// Manifest is what a segment's meta.json says.
type Manifest struct {
	Segment   Segment
	Begin     time.Time
	Interval  time.Duration
	Finalized bool           // anything but "Finalized" is open
	Shards    []int          // ascending
	Paths     map[int]string // prefix of each shard's chunks, with a slash at its end
}

// maxName is the longest name that a blob may have.
const maxName = 1024

// maxShards bounds the readers of a segment (I9). The service numbers shards with two digits; real accounts have up to
// three.
const maxShards = 1000

// Manifest reads the manifest of seg.
func (f *Feed) Manifest(ctx context.Context, seg Segment) (Manifest, error) {
	name := segmentsRoot + seg.String() + manifestName
	var doc struct {
		Begin    *time.Time `json:"begin"`
		Interval int64      `json:"intervalSecs"`
		Status   *string    `json:"status"`
		Paths    *[]string  `json:"chunkFilePaths"`
	}
	if err := f.document(ctx, name, &doc); err != nil {
		return Manifest{}, err
	}
	var lacks []string
	for _, field := range []struct {
		name    string
		missing bool
	}{{"begin", doc.Begin == nil}, {"status", doc.Status == nil}, {"chunkFilePaths", doc.Paths == nil}} {
		if field.missing {
			lacks = append(lacks, field.name)
		}
	}
	if lacks != nil {
		return Manifest{}, fmt.Errorf("parsing %s: it lacks %s", name, strings.Join(lacks, ", "))
	}
	if doc.Interval < 0 || doc.Interval > 366*24*3600 {
		return Manifest{}, fmt.Errorf("parsing %s: intervalSecs is %d", name, doc.Interval)
	}
	m := Manifest{
		Segment: seg, Begin: doc.Begin.UTC(), Interval: time.Duration(doc.Interval) * time.Second,
		Finalized: *doc.Status == "Finalized", Paths: map[int]string{},
	}
	if n := len(*doc.Paths); n > maxShards {
		return Manifest{}, fmt.Errorf("parsing %s: chunkFilePaths has %d entries; the limit is %d", name, n, maxShards)
	}
	for _, path := range *doc.Paths {
		path = strings.TrimPrefix(path, container)
		parts := strings.Split(path, "/")
		if len(parts) < 3 || parts[0] != "log" || !digits(parts[1]) || parts[len(parts)-1] != "" ||
			len(path) > maxName {
			return Manifest{}, fmt.Errorf("parsing %s: chunkFilePaths has %.100q, want log/<shard>/…/", name, path)
		}
		shard, err := strconv.Atoi(parts[1])
		if err != nil {
			return Manifest{}, fmt.Errorf("parsing %s: shard %.20q is out of range", name, parts[1])
		}
		if _, twice := m.Paths[shard]; twice {
			return Manifest{}, fmt.Errorf("parsing %s: shard %s is in chunkFilePaths twice", name, ShardName(shard))
		}
		m.Paths[shard] = path
		m.Shards = append(m.Shards, shard)
	}
	slices.Sort(m.Shards)
	return m, nil
}
