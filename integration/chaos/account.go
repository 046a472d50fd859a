package chaos

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"strings"
	"time"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/azure"
	"blobfeed/source/inventory"
)

// The account of a run. Scans list it while it changes, and its feed has every change.
const (
	containers = 20
	population = 2000 // names of blobs
	hot        = 10   // of them, those that change most
	pageSize   = 25   // of a listing: several rounds are needed
	pageTime   = 20 * time.Millisecond
)

func (w *World) now() time.Time { return time.Unix(0, w.clock.Load()) }

// tick sets the clock to the open segment of the feed.
func (w *World) tick() { w.clock.Store(w.feed.Segment().Add(time.Minute).UnixNano()) }

// fill makes the blobs that only a scan finds, and records changes from then on.
func (w *World) fill(rng *rand.Rand) {
	w.change(rng, population)
	w.account.Record()
}

// change writes and deletes blobs.
func (w *World) change(rng *rand.Rand, n int) {
	for range n {
		w.clock.Add(int64(time.Millisecond))
		k := rng.IntN(population)
		if rng.IntN(5) == 0 {
			k = rng.IntN(hot)
		}
		container, name := fmt.Sprintf("container-%02d", k%containers), fmt.Sprintf("dir/%d", k)
		if rng.IntN(4) == 0 {
			w.account.Delete(container, name)
		} else {
			w.account.Put(container, inventory.Blob{Name: name, Length: rng.Int64N(1 << 20)})
		}
	}
}

// publish puts what has changed into the feed, a part of it later. A nil rng leaves nothing for later.
func (w *World) publish(ctx context.Context, rng *rand.Rand, expect func(feedsim.Event)) error {
	var later func(account.Change) bool
	if rng != nil {
		later = func(account.Change) bool { return rng.IntN(4) == 0 }
	}
	_, err := w.account.Publish(ctx, w.feed, later, expect)
	return err
}

// turn ends a segment. What has changed until then is in it.
func (w *World) turn(ctx context.Context, expect func(feedsim.Event)) error {
	if err := w.publish(ctx, nil, expect); err != nil {
		return err
	}
	if err := w.feed.Next(ctx); err != nil {
		return err
	}
	w.tick()
	return nil
}

// fault lets requests for storage fail while there is a storm, and makes pages of blobs small and slow.
func (w *World) fault(r *http.Request) (status int, code string) {
	if n := w.requests.Add(1); n%3 == 0 && time.Now().UnixNano() < w.storm.Load() {
		return http.StatusServiceUnavailable, "ServerBusy"
	}
	q := r.URL.Query()
	if q.Get("restype") == "container" && !strings.Contains(r.URL.Path, "/"+azure.Container) {
		q.Set("maxresults", fmt.Sprint(pageSize))
		r.URL.RawQuery = q.Encode()
		time.Sleep(pageTime)
	}
	return 0, ""
}
