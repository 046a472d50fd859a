package offsets

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"
)

// However many of the lowest leases are in use, members differ by one at most; what is balanced stays; and a
// member that joins or leaves moves about its own share.
func TestSpread(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 500 {
		leases, n := 1+rng.IntN(40), 1+rng.IntN(8)
		owners := slices.Repeat([]int{-1}, leases)
		for step := range 20 {
			next := spread(owners, n)
			has := make([]int, n)
			for lease, member := range next {
				has[member]++
				if slices.Max(has)-slices.Min(has) > 1 {
					t.Fatalf("%d members: up to lease %d they have %v", n, lease, has)
				}
			}
			if again := spread(next, n); !slices.Equal(again, next) {
				t.Fatalf("%d members: %v becomes %v", n, next, again)
			}
			if joined := n; step > 0 && slices.Max(owners) == joined-2 &&
				!slices.Contains(owners, -1) { // the last one joined
				moved := 0
				for lease := range next {
					if owners[lease] != next[lease] {
						moved++
					}
				}
				if most := 2 * (leases/n + 1); moved > most {
					t.Errorf("%d leases, %d members: %d moved", leases, n, moved)
				}
			}
			owners = next
			if rng.IntN(2) == 0 || n == 1 {
				n++
				continue
			}
			gone := rng.IntN(n)
			n--
			for lease, member := range owners {
				switch {
				case member == gone:
					owners[lease] = -1
				case member > gone:
					owners[lease]--
				}
			}
		}
	}
}

// members holds what the members of a group were told.
type member struct {
	mu      sync.Mutex
	leases  map[int32]bool
	revoked int
}

func (m *member) Assigned(leases []int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range leases {
		m.leases[l] = true
	}
}

func (m *member) Revoked(leases []int32, _ bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, l := range leases {
		delete(m.leases, l)
	}
	m.revoked += len(leases)
}

func (m *member) Refused(error) {}

func (m *member) has() []int32 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return slices.Sorted(maps.Keys(m.leases))
}

// A member joins: it takes over every second lease, the lowest among them, and the others are not interrupted.
func TestJoinKeepsTheOthers(t *testing.T) {
	cfg, ctx := cluster(t)
	var members []*member
	join := func() func() {
		m := &member{leases: map[int32]bool{}}
		members = append(members, m)
		leave, err := Join(cfg, "group", 6*time.Second, m)
		if err != nil {
			t.Fatal(err)
		}
		return func() { leave(ctx) }
	}
	await := func(want string) {
		t.Helper()
		for {
			var have [][]int32
			for _, m := range members {
				have = append(have, m.has())
			}
			if fmt.Sprint(have) == want {
				return
			}
			select {
			case <-ctx.Done():
				t.Fatalf("%v, want %s", have, want)
			case <-time.After(10 * time.Millisecond): // the group's own time
			}
		}
	}
	defer join()()
	await("[[0 1 2 3]]")
	leave := join()
	await("[[0 2] [1 3]]")
	if n := members[0].revoked; n != 2 {
		t.Errorf("%d leases were taken from the first member, want 2", n)
	}
	leave()
	await("[[0 1 2 3] []]")
}
