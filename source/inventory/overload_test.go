package inventory_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
)

// An overloaded service gets fewer requests at a time, and more again when it has recovered.
func TestOverload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := account.New(nil)
		for i := range 20_000 {
			a.Put("c", inventory.Blob{Name: fmt.Sprintf("%06d", i)})
		}
		var mu sync.Mutex
		busy, now, most := false, 0, 0
		s := &account.Store{Account: a, Before: func(context.Context, string, inventory.Query) error {
			mu.Lock()
			now++
			most = max(most, now)
			answer := busy
			mu.Unlock()
			time.Sleep(time.Millisecond)
			mu.Lock()
			defer mu.Unlock()
			now--
			if answer {
				return inventory.ErrBusy
			}
			return nil
		}}
		pages := 0
		phase := map[int]int{} // the most requests at a time
		emit := func(_ context.Context, s *inventory.Step) error {
			mu.Lock()
			defer mu.Unlock()
			if s.Listed == nil {
				return nil
			}
			pages++
			switch pages {
			case 500: // of 2,000
				phase[1], most, busy = most, 0, true
				time.AfterFunc(100*time.Millisecond, func() {
					mu.Lock()
					defer mu.Unlock()
					most = 0
				})
				time.AfterFunc(200*time.Millisecond, func() {
					mu.Lock()
					defer mu.Unlock()
					phase[2], most, busy = most, 0, false
				})
			case 1900:
				phase[3] = most
			}
			return nil
		}
		o := inventory.Options{Requests: 8, PageSize: 10, Retry: retry}
		if err := inventory.Walk(t.Context(), s, inventory.Progress{}, o, emit); err != nil {
			t.Fatal(err)
		}
		if phase[1] != 8 || phase[2] != 1 || phase[3] != 8 {
			t.Errorf("requests at a time: %v", phase)
		}
	})
}

// A Walk that is cancelled ends, also the workers that wait for something to do, and those in emit.
func TestCancel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		over := errors.New("the time is over")
		ctx, cancel := context.WithCancelCause(t.Context())
		s := &service{list: one}
		ended := make(chan error)
		go func() {
			ended <- inventory.Walk(ctx, s, inventory.Progress{}, inventory.Options{Container: "c"},
				func(ctx context.Context, s *inventory.Step) error {
					if s.Listed == nil {
						return nil
					}
					<-ctx.Done()
					return ctx.Err()
				})
		}()
		synctest.Wait()
		cancel(over)
		if err := <-ended; !errors.Is(err, over) {
			t.Error(err)
		}
	})
}
