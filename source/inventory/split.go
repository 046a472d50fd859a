package inventory

import (
	"context"
	"errors"
	"strings"
)

// minPages is how many pages of a range are listed before it may be split. Small containers are never probed.
const minPages = 2

// victim returns the range to split: of those that had enough pages, the one that was split least.
func (w *walk) victim() *active {
	var best *active
	for _, r := range w.running {
		if !r.splitting && r.pages >= max(minPages, r.need) && (best == nil || r.split < best.split) {
			best = r
		}
	}
	return best
}

// split gives about half of the names that are left of a range, which another worker lists, to a new range.
func (w *walk) split(ctx context.Context, r *active) error {
	if err := r.turn.Take(ctx); err != nil {
		return err
	}
	left := r.Range
	r.turn.Leave()
	bound, err := w.bound(ctx, left)
	if err != nil {
		return err
	}
	// The range is held during emit: a step of it that ends at the bound must come later. Otherwise, after a crash
	// between the two, the range would be done and the names from the bound on would be in no range.
	if err := r.turn.Take(ctx); err != nil {
		return err
	}
	defer r.turn.Leave()
	if bound == "" || r.finished || bound <= r.After { // nothing found, or the lister was faster
		w.mu.Lock()
		defer w.mu.Unlock()
		r.need = 2 * r.pages // its names will have moved on
		return nil
	}
	child := Range{ID: w.newID(), Container: r.Container, From: bound, End: r.End}
	if err := w.emit(ctx, &Step{Range: r.ID, Container: r.Container, Split: &child}); err != nil {
		return err
	}
	r.End = bound
	w.mu.Lock()
	defer w.mu.Unlock()
	r.pages, r.need = 0, 0
	r.split++
	w.pending = append(w.pending, newActive(child, r.split))
	return nil
}

// bound returns an ASCII name that has names of the range on both sides, or "" if it finds none. It looks for the
// first character in which a later name differs from the name that was just listed, and for the middle of the
// characters that occur there.
//
// With the names data/00000 to data/59999, of which data/00417 was just listed, that character is the one behind data/,
// and it occurs up to 5: the bound is data/3.
func (w *walk) bound(ctx context.Context, r Range) (string, error) {
	p := prober{w: w, r: r}
	at := r.After
	low := common(at, r.End) // all names of the range share these characters
	low = max(low, len(w.prefix(r.Container)))
	high := 0
	for high < len(at) && printable(at[high]) {
		high++
	}
	// At which position is there a later name with a greater character? If there is one at some position, there is one
	// at all positions behind, too, since the bounds there are smaller.
	place, found := -1, ""
	for low < high {
		mid := (low + high) / 2
		name, err := p.first(ctx, at[:mid]+string(at[mid]+1))
		if err != nil {
			return "", err
		}
		if name != "" {
			place, found, high = mid, name, mid
		} else {
			low = mid + 1
		}
	}
	if place < 0 {
		return "", nil
	}
	same := at[:place]
	least := at[place] + 1
	if len(found) <= place || !strings.HasPrefix(found, same) || !printable(found[place]) {
		return same + string(least), nil
	}
	// Up to which character are there names?
	most, above := found[place], byte('~')
	if strings.HasPrefix(r.End, same) && len(r.End) > place {
		above = min(above, r.End[place])
	}
	for most < above {
		mid := most + (above-most+1)/2
		name, err := p.first(ctx, same+string(mid))
		if err != nil {
			return "", err
		}
		if name == "" || !strings.HasPrefix(name, same) || len(name) <= place || !printable(name[place]) {
			above = mid - 1
		} else {
			most = name[place]
		}
	}
	return same + string(at[place]+(most-at[place]+1)/2), nil
}

// printable reports whether a bound may end with the next character of c.
func printable(c byte) bool { return c >= ' ' && c < '~' }

// common returns how many leading bytes two names share.
func common(a, b string) int {
	n := 0
	for n < len(a) && n < len(b) && a[n] == b[n] {
		n++
	}
	return n
}

// prober looks for single names of a range.
type prober struct {
	w *walk
	r Range
}

// emptyPages is how many empty pages a probe follows.
const emptyPages = 4

// first returns the first name of the range from a bound on, or "" if there is none, or if it is too far to tell.
func (p *prober) first(ctx context.Context, from string) (string, error) {
	if p.r.End != "" && from >= p.r.End {
		return "", nil
	}
	q := Query{Container: p.r.Container, Prefix: p.w.prefix(p.r.Container), From: from, Max: 1}
	for range emptyPages {
		page, err := p.w.page(ctx, q)
		switch {
		case errors.Is(err, ErrNoContainer) || errors.Is(err, ErrMarker):
			return "", nil
		case err != nil:
			return "", err
		case len(page.Blobs) > 0:
			name := page.Blobs[0].Name
			if name < from || p.r.End != "" && name >= p.r.End {
				return "", nil
			}
			return name, nil
		case page.Marker == "":
			return "", nil
		}
		q.Marker = page.Marker
	}
	return "", nil
}
