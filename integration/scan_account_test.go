//go:build integration

package integration

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/azure"
	"blobfeed/source/inventory"
)

// scanned is an account that changes, behind an endpoint, with its feed. An hour of the feed passes when the test says
// so, and time within it with every change.
type scanned struct {
	account *account.Account
	files   *account.Files
	feed    *feedsim.Feed
	clock   atomic.Int64
	asked   asked
	down    atomic.Bool  // the feed fails
	held    atomic.Bool  // the account gives no answer
	allowed atomic.Int64 // requests for blobs; the next ones get no answer; 0: no limit

	mu   sync.Mutex
	rng  *rand.Rand
	hour int
}

// asked counts requests for the account.
type asked struct{ containers, pages, heads atomic.Int64 }

func (a *asked) String() string {
	return fmt.Sprintf("%d requests for containers, %d for blobs, %d for one blob", a.containers.Load(), a.pages.Load(),
		a.heads.Load())
}

// fault counts requests for the account and lets some of them wait. Requests for the feed fail while down is set.
func (s *scanned) fault(r *http.Request) (status int, code string) {
	waits := s.held.Load()
	switch {
	case strings.Contains(r.URL.Path, "/"+azure.Container):
		if s.down.Load() {
			return http.StatusServiceUnavailable, "ServerBusy"
		}
		return 0, ""
	case r.Method == http.MethodHead:
		s.asked.heads.Add(1)
	case r.URL.Query().Get("restype") == "container":
		n, limit := s.asked.pages.Add(1), s.allowed.Load()
		waits = waits || limit > 0 && n > limit
	default:
		s.asked.containers.Add(1)
	}
	if waits {
		<-r.Context().Done()
		return http.StatusServiceUnavailable, "ServerBusy"
	}
	return 0, ""
}

// containersOf is how many containers account.Fill makes beside the large one.
const containersOf = 49

func newScanned(t *testing.T, blobs int) (s *scanned, settings []string) {
	t.Helper()
	s = &scanned{rng: seed(t), files: account.NewFiles()}
	s.clock.Store(time.Date(2026, 1, 1, 0, 1, 0, 0, time.UTC).UnixNano())
	s.account = account.New(func() time.Time { return time.Unix(0, s.clock.Load()) })
	account.Fill(s.account, blobs)
	s.account.Record()
	var err error
	if s.feed, err = feedsim.New(s.files, feedsim.Spec{Shards: 4}); err != nil {
		t.Fatal(err)
	}
	if err := s.feed.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&account.Server{Account: s.account, Feed: s.files, Fault: s.fault})
	t.Cleanup(server.Close)
	return s, []string{"SOURCE_URL=" + server.URL + "/" + stack.AzuriteAccount, "SOURCE_AUTH=shared_key",
		"SOURCE_ACCOUNT=" + stack.AzuriteAccount, "SOURCE_KEY=" + stack.AzuriteKey}
}

// oddNames are those that get lost most easily on the way through URLs, XML and JSON.
var oddNames = []string{"a b", "ü/é.txt", "100%", "%41", "a+b", "q?x=1&y=2", "#1", "\"quoted\"", "<&>", "日本語",
	"a//b", "x/", "emoji 😀", "back\\slash", "tab\there", "~!@$^*()_=;:,'", "\u0001"}

// change writes and deletes blobs, some of them with odd names.
func (s *scanned) change(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		s.clock.Add(int64(50 * time.Microsecond))
		container := fmt.Sprintf("container-%02d", s.rng.IntN(containersOf))
		name := oddNames[s.rng.IntN(len(oddNames))]
		if s.rng.IntN(2) == 0 {
			container, name = "flat", fmt.Sprintf("data/part-%09d.parquet", s.rng.IntN(5000))
		}
		if s.rng.IntN(3) == 0 {
			s.account.Delete(container, name)
		} else {
			s.account.Put(container, inventory.Blob{Name: name, Length: s.rng.Int64N(1 << 20)})
		}
	}
}

func (s *scanned) publish(t *testing.T, late bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	var later func(account.Change) bool
	if late {
		later = func(account.Change) bool { return s.rng.IntN(3) == 0 }
	}
	if _, err := s.account.Publish(context.Background(), s.feed, later, nil); err != nil {
		t.Error(err)
	}
}

func (s *scanned) next(t *testing.T) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.feed.Next(context.Background()); err != nil {
		t.Error(err)
	}
	s.hour++
	s.clock.Store(time.Date(2026, 1, 1, s.hour, 1, 0, 0, time.UTC).UnixNano())
}

// keep changes the account, and publishes late, until the function it returns is called.
func (s *scanned) keep(t *testing.T) (stop func()) {
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() {
		defer close(done)
		for ctx.Err() == nil {
			s.change(20)
			s.publish(t, true)
			select {
			case <-ctx.Done():
			case <-time.After(5 * time.Millisecond): // the pace of the writers
			}
		}
	}()
	return func() { cancel(); <-done }
}

// statusOf returns what the verb status says of a bridge.
func statusOf(t *testing.T, settings []string) string {
	t.Helper()
	p := start(t, []string{"status", "--output", "json"}, settings...)
	if code := p.wait(t, time.Minute); code != 0 {
		t.Fatalf("status: exit code %d:\n%s", code, p.log)
	}
	return p.log.String()
}
