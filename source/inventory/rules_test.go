package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
)

// service answers with functions.
type service struct {
	*account.Store
	list       func(q inventory.Query) (*inventory.Page, error)
	containers func(marker string) (*inventory.Containers, error)
}

func (s *service) List(_ context.Context, q inventory.Query) (*inventory.Page, error) {
	return s.list(q)
}

func (s *service) Containers(_ context.Context, marker string) (*inventory.Containers, error) {
	return s.containers(marker)
}

func names(list ...string) (blobs []inventory.Blob) {
	for _, name := range list {
		blobs = append(blobs, inventory.Blob{Name: name})
	}
	return blobs
}

// one is a listing of one blob.
func one(inventory.Query) (*inventory.Page, error) { return &inventory.Page{Blobs: names("a")}, nil }

func ignore(context.Context, *inventory.Step) error { return nil }

// What a listing of the service never is ends the Walk with an error, and not with a shorter or longer result.
func TestImpossibleListings(t *testing.T) {
	for what, c := range map[string]struct {
		list       func(q inventory.Query) (*inventory.Page, error)
		containers func(marker string) (*inventory.Containers, error)
		from       inventory.Range
		want       string
	}{
		"names fall": {want: "ascending", list: func(inventory.Query) (*inventory.Page, error) {
			return &inventory.Page{Blobs: names("a", "é", "b")}, nil
		}},
		"a name comes twice": {want: "ascending", list: func(inventory.Query) (*inventory.Page, error) {
			return &inventory.Page{Blobs: names("a", "a")}, nil
		}},
		"a name is empty": {want: "ascending", list: func(inventory.Query) (*inventory.Page, error) {
			return &inventory.Page{Blobs: names("")}, nil
		}},
		"the next page begins again": {want: "ascending", list: func(q inventory.Query) (*inventory.Page, error) {
			return &inventory.Page{Blobs: names("a", "b"), Marker: q.Marker + "m"}, nil
		}},
		"the start is ignored": {want: "begins with", from: inventory.Range{ID: 1, Container: "c", After: "b"},
			list: func(inventory.Query) (*inventory.Page, error) {
				return &inventory.Page{Blobs: names("a", "b", "c")}, nil
			}},
		"the next page is the same": {want: "no progress", list: func(inventory.Query) (*inventory.Page, error) {
			return &inventory.Page{Marker: "m"}, nil
		}},
		"the next containers are the same": {want: "no progress",
			containers: func(string) (*inventory.Containers, error) { return &inventory.Containers{Marker: "m"}, nil }},
		"containers fall": {want: "ascending", containers: func(string) (*inventory.Containers, error) {
			return &inventory.Containers{Names: []string{"b", "a"}}, nil
		}},
		"a failure": {want: "listing container c: no route", list: func(inventory.Query) (*inventory.Page, error) {
			return nil, errors.New("no route")
		}},
	} {
		synctest.Test(t, func(t *testing.T) {
			s := &service{list: c.list, containers: c.containers}
			p := inventory.Progress{}
			switch {
			case c.from.ID != 0:
				p = inventory.Progress{Open: []inventory.Range{c.from}, Exhausted: true}
			case c.containers == nil:
				s.containers = func(string) (*inventory.Containers, error) {
					return &inventory.Containers{Names: []string{"c"}}, nil
				}
			case c.list == nil:
				s.list = func(inventory.Query) (*inventory.Page, error) { return &inventory.Page{}, nil }
			}
			err := inventory.Walk(t.Context(), s, p, inventory.Options{}, ignore)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("%s: %v", what, err)
			}
		})
	}
}

// Non-ASCII names may come in any order, since the service documents none.
func TestOtherOrdersAreAccepted(t *testing.T) {
	s := &service{list: func(inventory.Query) (*inventory.Page, error) {
		return &inventory.Page{Blobs: names("a", "é", "ä", "😀", "\uffee", "日")}, nil
	}}
	err := inventory.Walk(t.Context(), s, inventory.Progress{}, inventory.Options{Container: "c"}, ignore)
	if err != nil {
		t.Error(err)
	}
}

// A Walk of one container asks for no others: the credentials may be for it alone.
func TestOneContainer(t *testing.T) {
	s := &service{list: one}
	var p inventory.Progress
	var mu sync.Mutex
	apply := func(_ context.Context, s *inventory.Step) error {
		mu.Lock()
		defer mu.Unlock()
		return p.Apply(s)
	}
	for range 2 { // the second time, nothing is left
		err := inventory.Walk(t.Context(), s, p.Clone(), inventory.Options{Container: "c"}, apply)
		if err != nil || !p.Done() || p.Rows != 1 || p.Containers != 1 {
			t.Errorf("%+v, %v", p, err)
		}
	}
}

// If the service rejects the marker of a listing of containers, it begins again, and no container is opened twice.
func TestRejectedMarkerOfContainers(t *testing.T) {
	rejected := false
	s := &service{list: func(inventory.Query) (*inventory.Page, error) { return &inventory.Page{}, nil },
		containers: func(marker string) (*inventory.Containers, error) {
			switch {
			case marker == "":
				return &inventory.Containers{Names: []string{"a", "b"}, Marker: "m"}, nil
			case !rejected:
				rejected = true
				return nil, inventory.ErrMarker
			}
			return &inventory.Containers{Names: []string{"c"}}, nil
		}}
	var opened []string
	err := inventory.Walk(t.Context(), s, inventory.Progress{}, inventory.Options{Requests: 1},
		func(_ context.Context, s *inventory.Step) error {
			if s.Open != nil {
				opened = append(opened, s.Container)
			}
			return nil
		})
	if err != nil || !rejected || !slices.Equal(opened, []string{"a", "b", "c"}) {
		t.Errorf("%q, %v", opened, err)
	}
}

// A range that ended while it was probed is not split, even if a blob was created behind its last page.
func TestEndedRangeIsNotSplit(t *testing.T) {
	ended, probed := make(chan struct{}), make(chan struct{})
	pages := 0
	s := &service{list: func(q inventory.Query) (*inventory.Page, error) {
		if q.Max == 1 {
			select {
			case probed <- struct{}{}:
			case <-ended:
			}
			<-ended
			return &inventory.Page{Blobs: names("z")}, nil
		}
		if pages++; pages <= 2 {
			return &inventory.Page{Blobs: names(fmt.Sprint("a", pages)), Marker: fmt.Sprint(pages)}, nil
		}
		<-probed
		return &inventory.Page{Blobs: names("a3")}, nil
	}}
	o := inventory.Options{Container: "c", Requests: 2, PageSize: 9}
	err := inventory.Walk(t.Context(), s, inventory.Progress{}, o,
		func(_ context.Context, s *inventory.Step) error {
			if s.Split != nil {
				return errors.New("it is split")
			}
			if s.Listed != nil && s.Listed.Last {
				close(ended)
			}
			return nil
		})
	if err != nil {
		t.Error(err)
	}
}

// What is done makes no request.
func TestDone(t *testing.T) {
	s := &service{} // any request panics
	for _, o := range []inventory.Options{{}, {Container: "c"}} {
		p := inventory.Progress{Next: "c", Exhausted: true}
		if err := inventory.Walk(t.Context(), s, p, o, ignore); err != nil {
			t.Error(err)
		}
	}
}

// Steps that were lost or applied out of order are noticed.
func TestStepsThatDoNotFit(t *testing.T) {
	p := inventory.Progress{Open: []inventory.Range{{ID: 1, Container: "c"}}}
	for _, s := range []*inventory.Step{
		{Range: 2, Container: "c", Listed: &inventory.Listed{}},
		{Range: 2, Container: "c", Split: &inventory.Range{ID: 3, From: "m"}},
	} {
		if err := p.Apply(s); err == nil || !strings.Contains(err.Error(), "not open") {
			t.Error(err)
		}
	}
}

// Answers are applied in any order, and no marker is below the latest. The parts of a page are one page.
func TestProgressCounts(t *testing.T) {
	at := time.Unix(1000, 0)
	p := inventory.Progress{Open: []inventory.Range{{ID: 1, Container: "c"}}}
	for _, s := range []*inventory.Step{
		{Range: 1, Served: at, Listed: &inventory.Listed{Blobs: names("a"), More: true}},
		{Range: 1, Served: at, Listed: &inventory.Listed{Blobs: names("b")}},
		{Range: 1, Served: at.Add(-time.Second), Listed: &inventory.Listed{Blobs: names("c"), Last: true}},
	} {
		if err := p.Apply(s); err != nil {
			t.Fatal(err)
		}
	}
	if !p.Served.Equal(at) || p.Pages != 2 || p.Rows != 3 {
		t.Errorf("%+v", p)
	}
}

// A container that is gone, and a marker that is rejected, are answers: the request is not repeated.
func TestAnswersAreNotRepeated(t *testing.T) {
	s := &service{list: func(q inventory.Query) (*inventory.Page, error) {
		if q.Marker != "" {
			return nil, inventory.ErrMarker
		}
		if q.From == "" {
			return &inventory.Page{Blobs: names("a"), Marker: "m"}, nil
		}
		return nil, inventory.ErrNoContainer
	}}
	o := inventory.Options{Container: "c", Retry: func(ctx context.Context, f func(context.Context) error) error {
		err := f(ctx)
		if err != nil {
			t.Errorf("%v is taken for a failure", err)
		}
		return err
	}}
	if err := inventory.Walk(t.Context(), s, inventory.Progress{}, o, ignore); err != nil {
		t.Error(err)
	}
}

// A service that rejects the marker of each empty page gets a few requests, further and further apart, and the walk
// ends with an error that says so, within a round of a later scan. It is no loop.
func TestRejectedMarkerOfAnEmptyPage(t *testing.T) {
	for name, of := range map[string]string{"blobs": "c", "containers": ""} {
		synctest.Test(t, func(t *testing.T) {
			requests, began := 0, time.Now()
			s := &service{list: func(q inventory.Query) (*inventory.Page, error) {
				if requests++; requests > 1000 {
					return nil, errors.New("too many requests")
				}
				if q.Marker != "" {
					return nil, inventory.ErrMarker
				}
				return &inventory.Page{Marker: "m"}, nil
			}, containers: func(marker string) (*inventory.Containers, error) {
				if requests++; requests > 1000 {
					return nil, errors.New("too many requests")
				}
				if marker != "" {
					return nil, inventory.ErrMarker
				}
				return &inventory.Containers{Marker: "m"}, nil
			}}
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			defer cancel()
			err := inventory.Walk(ctx, s, inventory.Progress{}, inventory.Options{Container: of, Requests: 1}, ignore)
			took := time.Since(began)
			if !errors.Is(err, inventory.ErrMarker) || requests > 20 || took < time.Second || took > 9*time.Second {
				t.Errorf("%s: %d requests in %s: %v", name, requests, took, err)
			}
		})
	}
}
