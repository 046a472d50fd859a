package inventory

import (
	"context"
	"errors"
	"fmt"
	"time"

	"blobfeed/internal/pause"
)

// active is an open range.
type active struct {
	turn     pause.Turn // to use Range and finished: a split has it while it emits
	Range               // After is the last name that was passed to emit, or is about to be
	finished bool       // its last step was passed to emit, or is about to be

	// Under walk.mu:
	pages     int // that were listed since it was opened or split, with another one to follow
	need      int // pages before it may be split
	split     int // how often this range and those that it came from were split
	splitting bool
}

func newActive(r Range, split int) *active {
	return &active{turn: pause.NewTurn(), Range: r, split: split}
}

// A marker that the service rejects is answered by a listing from the last name. If the page before was empty, that
// listing begins where the last one did, and may fail as it did. The delays take 6.3 seconds together, less than a
// round of a later scan, because each round counts from 0.
const (
	maxRejected   = 6
	rejectedDelay = 50 * time.Millisecond // doubles
)

// list lists a range to its end.
func (w *walk) list(ctx context.Context, r *active) error {
	q, before := w.from(r), "" // the last name of this listing
	if h := r.Hint; h != nil && h.Prefix == q.Prefix {
		q.From, q.Marker = h.From, h.Marker
	}
	rejected, at := 0, r.After // markers, in a row, without a new name
	for {
		page, err := w.page(ctx, q)
		switch {
		case errors.Is(err, ErrMarker) && q.Marker != "":
			if r.After != at {
				rejected, at = 0, r.After
			}
			if rejected++; rejected > maxRejected {
				return fmt.Errorf("%w, %d times in a row, and the listing gets no further than %.200q: check the "+
					"endpoint, and proxies on the way to it", err, rejected, at)
			}
			if err := pause.For(ctx, rejectedDelay<<rejected); err != nil {
				return err
			}
			q, before = w.from(r), ""
			continue
		case errors.Is(err, ErrNoContainer): // deleted since: the feed has no events of its blobs either
			page = &Page{}
		case err != nil:
			return err
		}
		blobs := page.Blobs
		if before == "" && len(blobs) > 0 { // a listing can't begin behind a name
			if Before(blobs[0].Name, q.From) {
				return fmt.Errorf("%w: a listing from %.200q begins with %.200q", errOrder, q.From, blobs[0].Name)
			}
			if r.After != "" && blobs[0].Name == r.After {
				blobs = blobs[1:]
			}
		}
		if err := inOrder(before, blobs); err != nil {
			return err
		}
		if len(blobs) > 0 {
			before = blobs[len(blobs)-1].Name
		}
		if len(page.Blobs) == 0 && page.Marker != "" && page.Marker == q.Marker {
			return errStuck
		}
		q.Marker = page.Marker
		if last, err := w.deliver(ctx, r, blobs, page, q); last || err != nil {
			return err
		}
	}
}

// from returns the query for what is left of a range. Only the worker that lists the range changes From and After.
func (w *walk) from(r *active) Query {
	q := Query{Container: r.Container, Prefix: w.prefix(r.Container), From: r.From, Max: w.PageSize}
	if r.After != "" {
		q.From = r.After
	}
	return q
}

// page makes the request of a query.
func (w *walk) page(ctx context.Context, q Query) (page *Page, err error) {
	err = w.request(ctx, func(ctx context.Context) (busy bool, err error) {
		page, err = w.store.List(ctx, q)
		return page != nil && page.Busy, err
	})
	return page, err
}

// deliver emits the step of a page. Next is the query for what follows it.
func (w *walk) deliver(ctx context.Context, r *active, blobs []Blob, page *Page, next Query) (last bool, err error) {
	// A split between these lines and emit is harmless: it takes only names behind After, and no finished range. A
	// split before them has been emitted, since it holds the range until then: it precedes a step that relies on it.
	if err := r.turn.Take(ctx); err != nil {
		return false, err
	}
	mine := bounded(blobs, r.End)
	last = len(mine) < len(blobs) || page.Marker == ""
	if len(mine) > 0 {
		r.From, r.After = "", mine[len(mine)-1].Name
	}
	r.finished = last
	r.turn.Leave()

	listed := &Listed{Blobs: mine, Last: last}
	if len(mine) == 0 && !last {
		listed.Hint = &Hint{Marker: next.Marker, From: next.From, Prefix: next.Prefix}
	}
	err = w.emit(ctx, &Step{Range: r.ID, Container: r.Container, Listed: listed, Served: page.Served})
	if err != nil || last {
		return last, err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	r.pages++
	w.changed.Broadcast()
	return false, nil
}

var errOrder = errors.New("the names of the listing are not in ascending order")

// rising reports whether b can follow a in a listing. Two characters outside ASCII can follow each other either way:
// the service does not document their order.
func rising(a, b string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] < b[i] || b[i] >= 0x80
		}
	}
	return len(a) < len(b)
}

// Before reports whether name is certainly listed before from.
func Before(name, from string) bool { return name != from && !rising(from, name) }

// inOrder returns an error if names do not rise, from the name listed before them on.
func inOrder(before string, blobs []Blob) error {
	for i := range blobs {
		if name := blobs[i].Name; name == "" || before != "" && !rising(before, name) {
			return fmt.Errorf("%w: %.200q follows %.200q: check proxies on the way to the storage service", errOrder,
				name, before)
		}
		before = blobs[i].Name
	}
	return nil
}

// bounded returns the blobs before end. The comparison of bytes is right for all names, since end is ASCII.
func bounded(blobs []Blob, end string) []Blob {
	if end == "" {
		return blobs
	}
	for n := len(blobs); n > 0; n-- {
		if blobs[n-1].Name < end {
			return blobs[:n]
		}
	}
	return nil
}
