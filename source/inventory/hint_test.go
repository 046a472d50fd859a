package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"

	"blobfeed/source/inventory"
)

// briefly walks again and again, each time until the service was asked a few times, as in rounds that are short. It
// returns the progress, and how many walks it took.
func briefly(t *testing.T, s *service, o inventory.Options, requests int) (p inventory.Progress, walks int) {
	t.Helper()
	var mu sync.Mutex
	over := errors.New("the round is over")
	o.Requests = 1
	for walks = 1; !p.Done(); walks++ {
		if walks > 100 {
			t.Fatalf("it does not end: %+v", p)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		asked := 0
		count := func() error {
			if asked++; asked > requests {
				cancel(over)
				return over
			}
			return nil
		}
		of := &service{list: func(q inventory.Query) (*inventory.Page, error) {
			if err := count(); err != nil {
				return nil, err
			}
			return s.list(q)
		}, containers: func(marker string) (*inventory.Containers, error) {
			if err := count(); err != nil {
				return nil, err
			}
			return s.containers(marker)
		}}
		err := inventory.Walk(ctx, of, p.Clone(), o, func(_ context.Context, s *inventory.Step) error {
			mu.Lock()
			defer mu.Unlock()
			return p.Apply(s)
		})
		cancel(nil)
		if err != nil && !errors.Is(err, over) {
			t.Fatal(err)
		}
	}
	return p, walks - 1
}

// pageOf returns the number of a page by its marker, which belongs to one listing.
func pageOf(t *testing.T, q inventory.Query) int {
	from, page, _ := strings.Cut(q.Marker, "#")
	n, err := strconv.Atoi(page)
	if q.Marker != "" && (err != nil || from != q.From+"|"+q.Prefix) {
		t.Errorf("marker %q with %+v", q.Marker, q)
	}
	return n
}

// Pages without names, and pages of containers without one to list, are passed for good: a walk that is interrupted
// after a few requests continues behind them.
func TestEmptyPagesArePassed(t *testing.T) {
	const pages = 30
	s := &service{list: func(q inventory.Query) (*inventory.Page, error) {
		n := pageOf(t, q)
		next := fmt.Sprintf("%s|%s#%d", q.From, q.Prefix, n+1)
		switch {
		case q.From == "b": // behind the first name
			return &inventory.Page{Blobs: names("b", "c")}, nil
		case n < pages:
			return &inventory.Page{Marker: next}, nil
		case n == pages:
			return &inventory.Page{Blobs: names("b"), Marker: next}, nil
		}
		return &inventory.Page{Blobs: names("c")}, nil
	}, containers: func(marker string) (*inventory.Containers, error) {
		n, _ := strconv.Atoi(marker)
		if n < pages {
			return &inventory.Containers{Names: []string{fmt.Sprintf("a%02d", n)}, Marker: fmt.Sprint(n + 1)}, nil
		}
		return &inventory.Containers{Names: []string{"mine"}}, nil
	}}
	o := inventory.Options{
		Mine:   func(name string) bool { return name == "mine" },
		Prefix: func(string) string { return "p" },
	}
	p, walks := briefly(t, s, o, 4)
	if p.Rows != 2 || p.Containers != 1 || walks > 2*pages/3 {
		t.Errorf("%+v after %d walks", p, walks)
	}
}

// A hint is no more than that: where the service rejects it, or the prefix is another one, the range resumes by name, and
// the containers from the start.
func TestHintsAreNoMoreThanThat(t *testing.T) {
	var queries []inventory.Query
	s := &service{list: func(q inventory.Query) (*inventory.Page, error) {
		queries = append(queries, q)
		if q.Marker != "" {
			return nil, inventory.ErrMarker
		}
		return &inventory.Page{Blobs: names("b")}, nil
	}, containers: func(marker string) (*inventory.Containers, error) {
		if marker != "" {
			return nil, inventory.ErrMarker
		}
		return &inventory.Containers{Names: []string{"c", "d"}}, nil
	}}
	for prefix, want := range map[string]string{"": "old", "other": ""} {
		queries = nil
		p := inventory.Progress{Next: "c", Page: "expired", Open: []inventory.Range{
			{ID: 1, Container: "c", After: "a", Hint: &inventory.Hint{Marker: "old", From: "a"}}}}
		o := inventory.Options{Requests: 1, Prefix: func(string) string { return prefix }}
		err := inventory.Walk(t.Context(), s, p.Clone(), o, func(_ context.Context, s *inventory.Step) error {
			return p.Apply(s)
		})
		last := queries[len(queries)-2] // of c
		if err != nil || !p.Done() || p.Rows != 2 || p.Containers != 1 || queries[0].Marker != want ||
			last.Marker != "" || last.From != "a" {
			t.Errorf("%v, %+v, %+v", err, p, queries)
		}
	}
}

// The rows of a container are known while it is open, however it is split.
func TestRowsOfAContainer(t *testing.T) {
	p := inventory.Progress{Open: []inventory.Range{{ID: 1, Container: "c"}, {ID: 2, Container: "d"}}}
	for _, s := range []*inventory.Step{
		{Range: 1, Container: "c", Listed: &inventory.Listed{Blobs: names("a", "b")}},
		{Range: 1, Container: "c", Split: &inventory.Range{ID: 3, Container: "c", From: "m"}},
		{Range: 3, Container: "c", Listed: &inventory.Listed{Blobs: names("m")}},
		{Range: 1, Container: "c", Listed: &inventory.Listed{Blobs: names("c"), Last: true}},
		{Range: 2, Container: "d", Listed: &inventory.Listed{Blobs: names("a"), Last: true}},
	} {
		if err := p.Apply(s); err != nil {
			t.Fatal(err)
		}
	}
	if len(p.Open) != 1 || p.Open[0].Rows != 4 || p.Rows != 5 {
		t.Errorf("%+v", p)
	}
}
