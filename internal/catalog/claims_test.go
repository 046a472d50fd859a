package catalog

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/offsets"
)

// A read serves all that asked before it began, and nobody who asked later: a claim of before is in what each gets.
func TestClaimsAreShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := NewClaims()
		reads := 0
		failing := errors.New("a broker is away")
		read := func(ctx context.Context) ([]offsets.Claim, []error, error) {
			reads++
			select {
			case <-time.After(time.Second):
			case <-ctx.Done():
				return nil, nil, ctx.Err()
			}
			return []offsets.Claim{{Name: "a"}, {Name: "b"}}, nil, failing
		}
		var all sync.WaitGroup
		ask := func(ctx context.Context, want error) {
			all.Go(func() {
				claims, _, err := c.of(ctx, "a", 0, read)
				if err != want || err == failing && (len(claims) != 1 || claims[0].Name != "b") {
					t.Errorf("%v, %v; want %v and b", claims, err, want)
				}
			})
		}
		ask(t.Context(), failing) // the first read
		synctest.Wait()
		time.Sleep(time.Millisecond)
		for range 100 { // the second, for the first began before
			ask(t.Context(), failing)
		}
		all.Wait()
		if reads != 2 {
			t.Errorf("%d reads", reads)
		}
		ask(t.Context(), failing)
		synctest.Wait()
		time.Sleep(time.Millisecond)
		ctx, cancel := context.WithTimeout(t.Context(), 1500*time.Millisecond)
		defer cancel()
		ask(ctx, context.DeadlineExceeded) // in the middle of its read, which is not the end of the others'
		synctest.Wait()
		ask(t.Context(), failing)
		if all.Wait(); reads != 5 {
			t.Errorf("%d reads", reads)
		}
		// A caller may get what an earlier read found. The states that could not be read are reported once.
		works := func(context.Context) ([]offsets.Claim, []error, error) {
			reads++
			return nil, []error{failing}, nil
		}
		for i, after := range []time.Duration{0, time.Second, 2 * time.Minute} {
			time.Sleep(after)
			_, hidden, err := c.of(t.Context(), "a", time.Minute, works)
			if want := []int{6, 6, 7}[i]; reads != want || err != nil || (len(hidden) > 0) != (i != 1) {
				t.Errorf("after %s: %d reads, want %d, %v, %v", after, reads, want, hidden, err)
			}
		}
		// A read that succeeds as its caller ends is an answer.
		ctx, cancel = context.WithCancel(t.Context())
		claims, _, err := c.of(ctx, "a", 0, func(context.Context) ([]offsets.Claim, []error, error) {
			cancel()
			return []offsets.Claim{{Name: "b"}}, nil, nil
		})
		if len(claims) != 1 || err != nil {
			t.Errorf("%v, %v", claims, err)
		}
	})
}
