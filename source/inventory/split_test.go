package inventory_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
)

// paced is an account whose pages take 100 ms, and probes 10 ms. It counts both.
func paced(a *account.Account) (s *account.Store, pages, probes func() int) {
	var mu sync.Mutex
	n := map[bool]int{}
	s = &account.Store{Account: a, Before: func(_ context.Context, op string, q inventory.Query) error {
		if op != "list" {
			return nil
		}
		mu.Lock()
		n[q.Max > 1]++
		mu.Unlock()
		if time.Sleep(10 * time.Millisecond); q.Max > 1 {
			time.Sleep(90 * time.Millisecond)
		}
		return nil
	}}
	return s, func() int { return n[true] }, func() int { return n[false] }
}

// One container under one flat prefix is listed by all requests at a time, however its names are built.
func TestOneContainerIsShared(t *testing.T) {
	const blobs, size, requests = 40_000, 100, 8
	for name, format := range map[string]func(i int) string{
		"numbers":         func(i int) string { return fmt.Sprintf("data/%08d.parquet", i) },
		"hex":             func(i int) string { return fmt.Sprintf("logs/app/%08x", uint32(i)*2654435761) },
		"days":            func(i int) string { return fmt.Sprintf("2026/%02d/%02d/%d", 1+i%12, 1+i%28, i) },
		"one far away":    func(i int) string { return fmt.Sprintf("a%06d", i) + map[bool]string{true: "z"}[i == 0] },
		"not ASCII after": func(i int) string { return fmt.Sprintf("%05d/é%d", i, i) },
	} {
		synctest.Test(t, func(t *testing.T) {
			a := account.New(nil)
			for i := range blobs {
				a.Put("flat", inventory.Blob{Name: format(i)})
			}
			a.Put("flat", inventory.Blob{Name: "~"})
			s, pages, probes := paced(a)
			began := time.Now()
			var p inventory.Progress
			var mu sync.Mutex
			err := inventory.Walk(t.Context(), s, p, inventory.Options{Requests: requests, PageSize: size},
				func(_ context.Context, s *inventory.Step) error {
					mu.Lock()
					defer mu.Unlock()
					return p.Apply(s)
				})
			took, alone := time.Since(began), time.Duration(blobs/size)*100*time.Millisecond
			t.Logf("%s: %v instead of %v, %d pages and %d probes", name, took, alone, pages(), probes())
			if err != nil || p.Rows != int64(a.Len("flat")) || !p.Done() {
				t.Fatalf("%s: %+v, %v", name, p, err)
			}
			if took > alone*2/requests {
				t.Errorf("%s: %v with %d requests at a time, of %v with one", name, took, requests, alone)
			}
			if n := pages() - blobs/size; n > blobs/size/4 || probes() > blobs/size {
				t.Errorf("%s: %d pages too many, %d probes", name, n, probes())
			}
		})
	}
}

// Small containers cost one request each: nothing is probed.
func TestSmallAccountsAreNotProbed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := account.New(nil)
		for i := range 30 {
			for k := range i * 10 { // at most 290 blobs
				a.Put(fmt.Sprintf("c%02d", i), inventory.Blob{Name: fmt.Sprint(k)})
			}
			a.Create(fmt.Sprintf("c%02d", i))
		}
		s, pages, probes := paced(a)
		err := inventory.Walk(t.Context(), s, inventory.Progress{}, inventory.Options{PageSize: 300},
			func(context.Context, *inventory.Step) error { return nil })
		if err != nil || pages() != 30 || probes() != 0 {
			t.Errorf("%d pages, %d probes, %v", pages(), probes(), err)
		}
	})
}
