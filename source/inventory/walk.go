package inventory

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/internal/crash"
	"blobfeed/internal/pause"
)

// MaxPage is how many blobs a page has at most, by the service's rules.
const MaxPage = 5000

// Options say what Walk lists, and how.
type Options struct {
	Container string                        // only this one; "" is all
	Prefix    func(container string) string // only names that begin with it; nil: all
	Mine      func(container string) bool   // whether this Walk lists the container; nil: it lists all
	Requests  int                           // at a time, at most; 0 is 8
	PageSize  int                           // 0 is MaxPage
	// Retry calls a request until it succeeds, or returns the error that ends the Walk. nil calls it once.
	Retry func(ctx context.Context, request func(context.Context) error) error
}

// Walk lists what p leaves and passes every step to emit. Container and Mine must be those of the Walk
// that began p; Requests and PageSize may differ. With another Prefix, what the new one selects of the rest is listed.
//
// Emit is called by several goroutines at a time, and may block. Steps must be applied, and stored, so that a step
// whose emit had returned before the emit of another began comes before that other one. Any beginning of such an order
// is a state from which another Walk lists exactly the rest.
//
// If ctx ends, Walk returns its cause.
func Walk(ctx context.Context, store Store, p Progress, o Options, emit func(context.Context, *Step) error) error {
	o.Requests, o.PageSize = cmp.Or(o.Requests, 8), cmp.Or(o.PageSize, MaxPage)
	w := &walk{store: store, Options: o, emit: emit, gate: pause.NewGate(o.Requests, o.Requests),
		opened: p.Next, exhausted: p.Exhausted, marker: p.Page, known: p.Page}
	w.changed.L = &w.mu
	for _, r := range p.Open {
		w.pending = append(w.pending, newActive(r, 0))
		w.lastID = max(w.lastID, r.ID)
	}
	group, inner := errgroup.WithContext(ctx)
	stop := context.AfterFunc(inner, func() {
		w.mu.Lock() // a waiter that has checked ctx already waits
		defer w.mu.Unlock()
		w.changed.Broadcast()
	})
	defer stop()
	for range o.Requests {
		group.Go(crash.Try(ctx, "listing", func() error { return w.work(inner) }))
	}
	err := group.Wait()
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx) // the errors of requests that were broken off say less
	}
	return err
}

// walk is a Walk while it runs.
type walk struct {
	Options
	store Store
	emit  func(context.Context, *Step) error
	gate  *pause.Gate

	mu        sync.Mutex
	changed   sync.Cond // any of the fields below
	pending   []*active // open, and listed by nobody
	running   []*active // open, and listed by a worker
	opening   bool      // a worker is opening the next container
	exhausted bool
	lastID    int

	names    []string  // containers to open; of the worker that is opening, as the rest
	marker   string    // of the page of containers behind names
	known    string    // the last marker that was emitted
	rejected int       // markers of this listing of containers
	asked    bool      // marker is that of an answer
	served   time.Time // of that answer
	listed   string    // the last container of the answers, to check their order
	opened   string    // the last container that was opened
}

// prefix returns what the names to list in a container begin with.
func (w *walk) prefix(container string) string {
	if w.Prefix == nil {
		return ""
	}
	return w.Prefix(container)
}

// work lists ranges until none is left.
func (w *walk) work(ctx context.Context) error {
	for {
		r, err := w.next(ctx)
		if r == nil || err != nil {
			return err
		}
		if err := w.list(ctx, r); err != nil {
			return fmt.Errorf("listing container %s: %w", r.Container, err)
		}
		w.ended(r)
	}
}

// next returns a range to list: one that is open, else the next container, else a part of a range that another worker
// lists. It returns nil if nothing is left.
func (w *walk) next(ctx context.Context) (*active, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for ctx.Err() == nil {
		switch {
		case len(w.pending) > 0:
			r := w.pending[0]
			w.pending = w.pending[1:]
			w.running = append(w.running, r)
			return r, nil
		case !w.exhausted && !w.opening:
			if err := w.unlocked(&w.opening, func() error { return w.open(ctx) }); err != nil {
				return nil, err
			}
		case w.exhausted && len(w.running) == 0:
			return nil, nil
		default:
			victim := w.victim()
			if victim == nil {
				w.changed.Wait()
				continue
			}
			if err := w.unlocked(&victim.splitting, func() error { return w.split(ctx, victim) }); err != nil {
				return nil, fmt.Errorf("splitting a range of container %s: %w", victim.Container, err)
			}
		}
	}
	return nil, ctx.Err()
}

// unlocked calls f without the lock, while flag keeps other workers from the same.
func (w *walk) unlocked(flag *bool, f func() error) error {
	*flag = true
	w.mu.Unlock()
	err := f()
	w.mu.Lock()
	*flag = false
	w.changed.Broadcast()
	return err
}

// newID returns an ID that no open range has.
func (w *walk) newID() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.lastID++
	return w.lastID
}

// ended removes a range that is done.
func (w *walk) ended(r *active) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = slices.DeleteFunc(w.running, func(other *active) bool { return other == r })
	w.changed.Broadcast()
}

// open opens the next container, or finds that there is none.
func (w *walk) open(ctx context.Context) error {
	name, err := w.container(ctx)
	if err != nil {
		return err
	}
	if name == "" {
		if err := w.emit(ctx, &Step{Exhausted: true, Served: w.served}); err != nil {
			return err
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.exhausted = true
		return nil
	}
	r := Range{ID: w.newID(), Container: name}
	if err := w.emit(ctx, &Step{Range: r.ID, Container: name, Open: &r, Served: w.served}); err != nil {
		return err
	}
	w.opened = name
	w.mu.Lock()
	defer w.mu.Unlock()
	w.pending = append(w.pending, newActive(r, 0))
	return nil
}

// container returns the next container to open, or "".
func (w *walk) container(ctx context.Context) (string, error) {
	if w.Container != "" {
		if w.opened != "" || w.Mine != nil && !w.Mine(w.Container) {
			return "", nil
		}
		return w.Container, nil
	}
	for {
		for len(w.names) > 0 {
			name := w.names[0]
			w.names = w.names[1:]
			if name <= w.listed {
				return "", fmt.Errorf("listing containers: %w: %.100q follows %.100q", errOrder, name, w.listed)
			}
			w.listed = name
			if name > w.opened && (w.Mine == nil || w.Mine(name)) {
				return name, nil
			}
		}
		if w.asked && w.marker == "" {
			return "", nil
		}
		if err := w.containers(ctx); err != nil {
			return "", fmt.Errorf("listing containers: %w", err)
		}
	}
}

// containers gets the next page of containers.
func (w *walk) containers(ctx context.Context) error {
	if w.marker != w.known && w.marker != "" {
		if err := w.emit(ctx, &Step{Page: w.marker, Served: w.served}); err != nil {
			return err
		}
		w.known = w.marker
	}
	var page *Containers
	err := w.request(ctx, func(ctx context.Context) (busy bool, err error) {
		page, err = w.store.Containers(ctx, w.marker)
		return page != nil && page.Busy, err
	})
	if errors.Is(err, ErrMarker) && w.marker != "" {
		if w.rejected++; w.rejected > maxRejected {
			return fmt.Errorf("%w, %d times: check the endpoint, and proxies on the way to it", err, w.rejected)
		}
		if err := pause.For(ctx, rejectedDelay<<w.rejected); err != nil {
			return err
		}
		w.marker, w.asked, w.listed = "", false, "" // from the start: containers up to w.opened are skipped
		return nil
	}
	if err != nil {
		return err
	}
	if len(page.Names) == 0 && page.Marker != "" && page.Marker == w.marker {
		return errStuck
	}
	w.names, w.marker, w.asked, w.served = page.Names, page.Marker, true, page.Served
	return nil
}

var errStuck = errors.New("the listing makes no progress: its next page is the same one: " +
	"check the endpoint, and proxies on the way to it")

// request makes a request when the gate lets it through.
func (w *walk) request(ctx context.Context, f func(context.Context) (busy bool, err error)) error {
	var answer error // an answer, and not a failure: repeating the request would not change it
	once := func(ctx context.Context) error {
		turn, err := w.gate.Enter(ctx)
		if err != nil {
			return err
		}
		busy, err := f(ctx)
		w.gate.Leave(turn, busy || errors.Is(err, ErrBusy))
		if answer = nil; errors.Is(err, ErrMarker) || errors.Is(err, ErrNoContainer) {
			answer, err = err, nil
		}
		return err
	}
	retry := w.Retry
	if retry == nil {
		retry = func(ctx context.Context, f func(context.Context) error) error { return f(ctx) }
	}
	return errors.Join(retry(ctx, once), answer)
}
