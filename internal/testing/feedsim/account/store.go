package account

import (
	"context"
	"strings"
	"time"

	"blobfeed/source/inventory"
)

// Store is an Account as a listing sees it, with the faults of a service. It is safe for concurrent use if its hooks
// are.
type Store struct {
	*Account
	// Size returns how many blobs the next page has, of at most limit. With 0 the page is empty and has a marker.
	// nil: as many as fit.
	Size func(limit int) int
	// Before is called before every request and can fail it, wait, or change the account. Op is containers, list or
	// head.
	Before func(ctx context.Context, op string, q inventory.Query) error
}

var _ inventory.Store = (*Store)(nil)

// marker is what a marker begins with. The name follows that the next page begins with.
const marker = "next!"

func (s *Store) before(ctx context.Context, op string, q inventory.Query) error {
	if err := ctx.Err(); err != nil || s.Before == nil {
		return err
	}
	return s.Before(ctx, op, q)
}

func (s *Store) size(limit int) int {
	if s.Size == nil {
		return limit
	}
	return min(limit, s.Size(limit))
}

// containersPage is how many containers a page has at most.
const containersPage = 5000

// Containers implements inventory.Store.
func (s *Store) Containers(ctx context.Context, after string) (*inventory.Containers, error) {
	if err := s.before(ctx, "containers", inventory.Query{Marker: after}); err != nil {
		return nil, err
	}
	last := strings.TrimPrefix(strings.TrimSuffix(after, "-"), marker)
	names, all := s.names(last, s.size(containersPage))
	page := &inventory.Containers{Names: names, Served: s.served()}
	if !all {
		if len(names) > 0 {
			last = names[len(names)-1]
		}
		page.Marker = different(marker+last, after)
	}
	return page, nil
}

// List implements inventory.Store.
func (s *Store) List(ctx context.Context, q inventory.Query) (*inventory.Page, error) {
	if err := s.before(ctx, "list", q); err != nil {
		return nil, err
	}
	from, size := q.From, s.size(q.Max)
	if q.Marker != "" {
		from = strings.TrimPrefix(strings.TrimSuffix(q.Marker, "-"), marker)
	}
	page := &inventory.Page{Served: s.served()}
	next, err := s.page(q, from, size, func(e *entry) { page.Blobs = append(page.Blobs, e.blob()) })
	if err != nil {
		return nil, err
	}
	if next != "" {
		page.Marker = different(marker+next, q.Marker)
	}
	return page, nil
}

// different returns the marker that follows before. Those of the service differ also after an empty page.
func different(marker, before string) string {
	if marker == before {
		return marker + "-"
	}
	return marker
}

// served is the time in the header of an answer, which has no fractions.
func (s *Store) served() time.Time { return s.now().UTC().Truncate(time.Second) }

// Exists implements inventory.Store.
func (s *Store) Exists(ctx context.Context, container, name string) (bool, time.Time, error) {
	if err := s.before(ctx, "head", inventory.Query{Container: container, From: name}); err != nil {
		return false, time.Time{}, err
	}
	return s.Account.Exists(container, name), s.served(), nil
}
