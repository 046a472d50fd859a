package inventory_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
)

// odd are names that break code which escapes, splits or compares them.
var odd = []string{"a b & é-%d.jpg", "100%%25/x#y+z-%d", "/leading-%d", `quo"te\back-%d`, "😀/emoji-%d", "trailing-%d/",
	"\uffee-%d", "é%dé", "~%d~", "~~~%d", "deep/deep/deep/%05d", "%09d", "data/x-%x", "Z%d", "\u007f%d", "%d\ufffe"}

func randomName(r *rand.Rand) string { return fmt.Sprintf(odd[r.IntN(len(odd))], r.IntN(2000)) }

// world is an account that changes while it is listed.
type world struct {
	*account.Store
	mu     sync.Mutex
	rng    *rand.Rand
	stable map[string]bool // container/name of what exists all the time
}

func newWorld(seed uint64) *world {
	w := &world{Store: &account.Store{Account: account.New(nil)}, rng: rand.New(rand.NewPCG(seed, 1)),
		stable: map[string]bool{}}
	for i := range w.rng.IntN(6) {
		container := fmt.Sprintf("c%d", i)
		w.Create(container)
		for range w.rng.IntN([]int{1, 10, 300}[w.rng.IntN(3)]) {
			name := randomName(w.rng)
			w.Put(container, inventory.Blob{Name: name})
			w.stable[container+"/"+name] = true
		}
	}
	w.Size = func(limit int) int {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.rng.IntN(min(limit, 20) + 2) // also of containers
	}
	w.Before = func(_ context.Context, op string, q inventory.Query) error {
		w.mu.Lock()
		latency := time.Duration(1+w.rng.IntN(20)) * time.Millisecond
		w.mu.Unlock()
		if q.Max > 1 {
			latency *= 10 // a page takes longer than a single name
		}
		time.Sleep(latency) // virtual
		w.mu.Lock()
		defer w.mu.Unlock()
		w.change()
		switch n := w.rng.IntN(40); {
		case n == 0 && q.Marker != "":
			return inventory.ErrMarker
		case n == 1:
			return inventory.ErrBusy
		}
		return nil
	}
	return w
}

// change writes or deletes something that is not stable.
func (w *world) change() {
	container, name := fmt.Sprintf("c%d", w.rng.IntN(6)), randomName(w.rng)
	brief := fmt.Sprintf("brief%d", w.rng.IntN(4))
	switch w.rng.IntN(8) {
	case 0, 1:
		w.Put(container, inventory.Blob{Name: name, Length: 1})
	case 2, 3:
		if !w.stable[container+"/"+name] {
			w.Delete(container, name)
		}
	case 4:
		w.Put(brief, inventory.Blob{Name: name})
	case 5:
		w.Drop(brief)
	}
}

var errKilled = errors.New("killed")

// journal takes steps, each at any time between the begin and the end of its emit, until it is killed.
type journal struct {
	mu    sync.Mutex
	rng   *rand.Rand
	steps []*inventory.Step
	left  int
}

func (j *journal) emit(_ context.Context, s *inventory.Step) error {
	j.wait()
	defer j.wait()
	j.mu.Lock()
	defer j.mu.Unlock()
	if j.left--; j.left < 0 {
		return errKilled
	}
	j.steps = append(j.steps, s)
	return nil
}

// wait gives other steps the time to come first.
func (j *journal) wait() {
	j.mu.Lock()
	d := time.Duration(j.rng.IntN(2)*j.rng.IntN(100)) * time.Millisecond
	j.mu.Unlock()
	time.Sleep(d) // virtual
}

func retry(ctx context.Context, f func(context.Context) error) error {
	for {
		if err := f(ctx); !errors.Is(err, inventory.ErrBusy) {
			return err
		}
	}
}

// Whatever changes and wherever a Walk ends: what exists all the time is listed once, and nothing twice.
func TestEveryBlobOnce(t *testing.T) {
	splits, kills := 0, 0
	for seed := range uint64(200) {
		synctest.Test(t, func(t *testing.T) {
			s, k := scan(t, seed)
			splits, kills = splits+s, kills+k
		})
		if t.Failed() {
			return
		}
	}
	if splits < 100 || kills < 100 {
		t.Errorf("%d splits and %d kills: the test shows little", splits, kills)
	}
}

// scan lists the world of a seed in several Walks, all but the last of which are killed.
func scan(t *testing.T, seed uint64) (splits, kills int) {
	w, rng := newWorld(seed), rand.New(rand.NewPCG(seed, 2))
	prefix := []string{"", "", "", "data/", "é"}[rng.IntN(5)]
	seen := map[string]int{}
	var p inventory.Progress
	widest := 0
	for !p.Done() {
		o := inventory.Options{Requests: 1 + rng.IntN(8), PageSize: 1 + rng.IntN(20), Retry: retry,
			Prefix: func(string) string { return prefix },
			Mine:   func(c string) bool { return c != "c3" }}
		widest = max(widest, o.Requests)
		j := &journal{rng: rand.New(rand.NewPCG(seed, rng.Uint64())), left: rng.IntN(1 + 10<<rng.IntN(6))}
		if err := inventory.Walk(t.Context(), w, p, o, j.emit); errors.Is(err, errKilled) {
			kills++
		} else if err != nil {
			t.Fatalf("seed %d: %v", seed, err)
		}
		// The last transaction may be lost.
		for _, s := range j.steps[:len(j.steps)-rng.IntN(min(len(j.steps), 4)+1)] {
			if err := p.Apply(s); err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			if s.Split != nil {
				splits++
			}
			if s.Listed != nil {
				for _, b := range s.Listed.Blobs {
					seen[s.Container+"/"+b.Name]++
				}
			}
		}
		p = roundTrip(t, p)
		if len(p.Open) > widest {
			t.Fatalf("seed %d: %d open ranges with %d requests", seed, len(p.Open), widest)
		}
	}
	for key := range w.stable {
		container, name, _ := strings.Cut(key, "/")
		if wanted := strings.HasPrefix(name, prefix) && container != "c3"; wanted != (seen[key] == 1) {
			t.Errorf("seed %d: %q was listed %d times", seed, key, seen[key])
		}
	}
	for key, n := range seen {
		if n > 1 {
			t.Errorf("seed %d: %q was listed %d times", seed, key, n)
		}
	}
	return splits, kills
}

// roundTrip returns what a restarted program reads.
func roundTrip(t *testing.T, p inventory.Progress) (read inventory.Progress) {
	t.Helper()
	text, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &read); err != nil {
		t.Fatal(err)
	}
	return read
}
