//go:build integration

package integration

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http/httptest"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/feedsim"
	"blobfeed/internal/feedsim/account"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// scanned is an account that changes, behind an endpoint, with its feed. An hour of the feed passes when the test says
// so, and time within it with every change.
type scanned struct {
	account *account.Account
	files   *account.Files
	feed    *feedsim.Feed
	clock   atomic.Int64

	mu   sync.Mutex
	rng  *rand.Rand
	hour int
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
	server := httptest.NewServer(&account.Server{Account: s.account, Feed: s.files})
	t.Cleanup(server.Close)
	return s, []string{"SOURCE_URL=" + server.URL + "/" + stack.AzuriteAccount, "SOURCE_AUTH=shared_key",
		"SOURCE_ACCOUNT=" + stack.AzuriteAccount, "SOURCE_KEY=" + stack.AzuriteKey}
}

// oddNames are those that get lost most easily on the way through URLs, XML and JSON.
var oddNames = []string{"a b", "ü/é.txt", "100%", "%41", "a+b", "q?x=1&y=2", "#1", "\"quoted\"", "<&>", "日本語", "a//b", "x/",
	"emoji 😀", "back\\slash", "tab\there", "~!@$^*()_=;:,'", "\u0001"}

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

// blobTable is what a consumer has: the etag of each key's last record.
type blobTable struct{ etags map[string]string }

func (t *blobTable) Note(r verify.Record) {
	if r.Key == nil {
		return
	}
	var path []string
	var value struct{ After *struct{ Etag string } }
	if json.Unmarshal(r.Key, &path) != nil || json.Unmarshal(r.Value, &value) != nil {
		return
	}
	delete(t.etags, path[0])
	if value.After != nil {
		t.etags[path[0]] = value.After.Etag
	}
}

func (t *blobTable) Failures() []verify.Failure { return nil }

// compare fails where the table is not the account.
func (s *scanned) compare(t *testing.T, got *blobTable) {
	t.Helper()
	want, wrong := s.account.Blobs(), 0
	for path, b := range want {
		if got.etags[path] != b.ETag {
			if wrong++; wrong <= 5 {
				t.Errorf("%q: the topic has etag %q, the account %q", path, got.etags[path], b.ETag)
			}
		}
	}
	for path := range got.etags {
		if _, ok := want[path]; !ok {
			if wrong++; wrong <= 5 {
				t.Errorf("%q: the account does not have it", path)
			}
		}
	}
	t.Logf("%d keys, %d of them wrong", len(want), wrong)
}

// scanBlobs is how many blobs the account of TestScan has; SCAN_BLOBS=1000000 takes some minutes.
func scanBlobs(t *testing.T) int {
	text := os.Getenv("SCAN_BLOBS")
	if text == "" {
		return 100_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Three instances scan an account that changes, and are killed again and again. Afterwards the topic is the account, no
// row was lost or doubled, and verify agrees.
func TestScan(t *testing.T) {
	s, settings := newScanned(t, scanBlobs(t))
	name, topic := names(t, shared.KafkaBrokers, -1)
	settings = append(settings, "NAME="+name, "TOPIC="+topic, "KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"INITIAL_SCAN=yes", "SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "POLL_INTERVAL=200ms", "OFFSETS_LEASES=4",
		"DEBUG=txn_records=5000")
	s.change(1000)
	s.publish(t, true)
	s.next(t)
	table := &blobTable{etags: map[string]string{}}
	rows := newScanRows()
	c := consume(t, shared.KafkaBrokers, topic, table, rows)
	stop := s.keep(t)
	began := time.Now()
	var instances [3]*program
	kills := 0
	for !rows.feed {
		for i, p := range instances {
			if p == nil {
				instances[i] = start(t, []string{"run"}, append(settings, fmt.Sprintf("INSTANCE=%s-%d-%d", name, i, kills))...)
			}
		}
		c.poll(t.Context(), time.Duration(500+s.rng.IntN(1500))*time.Millisecond)
		if rows.feed {
			break
		}
		victim := s.rng.IntN(len(instances))
		instances[victim].signal(syscall.SIGKILL)
		<-instances[victim].done
		instances[victim] = nil
		if kills++; kills > 200 {
			t.Fatalf("%d rows after %d kills", rows.n, kills)
		}
	}
	t.Logf("%d rows in %s, %d kills", rows.n, time.Since(began).Round(time.Millisecond), kills)
	stop()
	for range 3 {
		s.change(100)
		s.publish(t, false)
		s.next(t)
	}
	eventually(t, 2*time.Minute, "all segments are complete", func() bool {
		c.poll(t.Context(), 100*time.Millisecond)
		return strings.Contains(statusOf(t, settings), `"completed":"2026/01/01/0300"`)
	})
	c.drain(t)
	c.check(t)
	s.compare(t, table)
	for i, p := range instances {
		if p != nil {
			p.signal(syscall.SIGTERM)
			if code := p.wait(t, time.Minute); code != 0 {
				t.Errorf("instance %d: exit code %d", i, code)
			}
		}
	}
	p := start(t, []string{"verify", "--feed"}, settings...)
	if code := p.wait(t, 2*time.Minute); code != 0 {
		t.Errorf("verify --feed: exit code %d:\n%s", code, p.log)
	}
}

// With only, the program exits with 0 behind the last row. It is an export of the account, in 256 MiB.
func TestScanOnly(t *testing.T) {
	blobs := scanBlobs(t)
	s, settings := newScanned(t, blobs)
	name, topic := names(t, shared.KafkaBrokers, -1)
	table, rows := &blobTable{etags: map[string]string{}}, newScanRows()
	c := consume(t, shared.KafkaBrokers, topic, table, rows)
	began := time.Now()
	p := start(t, []string{"run"}, append(settings, "NAME="+name, "TOPIC="+topic, "INITIAL_SCAN=only",
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","), "GOMEMLIMIT=256MiB")...)
	if code := p.wait(t, 5*time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	took, used := time.Since(began), p.cmd.ProcessState
	t.Logf("%d rows in %s: %.0f rows/s from start to end, %.1f us CPU a row, %v MB at most", blobs,
		took.Round(time.Millisecond), float64(blobs)/took.Seconds(),
		float64((used.UserTime()+used.SystemTime()).Microseconds())/float64(blobs),
		used.SysUsage().(*syscall.Rusage).Maxrss>>10)
	c.drain(t)
	c.check(t)
	if rows.n != blobs || rows.feed || c.marks != partitions {
		t.Errorf("%d rows, events %t, %d markers", rows.n, rows.feed, c.marks)
	}
	s.compare(t, table)
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

// scanRows counts the rows of a scan. Each key has one, before all of its events.
type scanRows struct {
	n        int
	feed     bool // the first event came
	fed      map[int32]bool
	rows     map[string]bool
	failures []verify.Failure
}

func newScanRows() *scanRows { return &scanRows{rows: map[string]bool{}, fed: map[int32]bool{}} }

func (s *scanRows) Note(r verify.Record) {
	if r.Key == nil {
		return
	}
	if r.Header("scan") == nil {
		s.feed, s.fed[r.Partition] = true, true
		return
	}
	s.n++
	if s.rows[string(r.Key)] || s.fed[r.Partition] {
		s.failures = append(s.failures, verify.Failure{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
			Key: string(r.Key), Problem: "a row that is doubled, or behind an event"})
	}
	s.rows[string(r.Key)] = true
}

func (s *scanRows) Failures() []verify.Failure { return s.failures }
