package simulation

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
)

// storage is the account of a plan with scans. Its changes are what the feed has.
type storage struct {
	account *account.Account
	clock   atomic.Int64 // of the service, in ns: within the feed's open segment

	mu     sync.Mutex
	rng    *rand.Rand
	frozen bool     // nothing changes
	slow   int64    // longest time of a HEAD request, in ns
	was    []change // all changes, in their order
	traced *scanTracer
}

// change is what became of a blob at a time of the service, in ns. A blob that is deleted has no etag.
type change struct {
	path, etag string
	at         int64
}

const containers = 4

func newStorage(p *Plan, traced *scanTracer) *storage {
	s := &storage{rng: rand.New(rand.NewPCG(p.Seed, 0xacc)), traced: traced, slow: int64(p.Head)}
	s.turn(feedStart)
	s.account = account.New(func() time.Time { return time.Unix(0, s.clock.Load()) })
	if traced != nil {
		traced.create(s.account)
	} else if p.InitialScan {
		s.change(3 * p.Blobs)
	}
	s.account.Record()
	return s
}

// turn sets the clock to a segment of the feed.
func (s *storage) turn(segment time.Time) { s.clock.Store(segment.Add(time.Minute).UnixNano()) }

// change makes changes at random, most of them of few blobs.
func (s *storage) change(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for range n {
		if s.frozen {
			return
		}
		s.clock.Add(int64(time.Millisecond))
		if s.traced != nil {
			s.changeTraced()
			return
		}
		container := fmt.Sprintf("c%d", s.rng.IntN(containers))
		blob := fmt.Sprintf("dir/ü%d", s.rng.IntN(40))
		etag := ""
		switch s.rng.IntN(4) {
		case 0:
			s.account.Delete(container, blob)
		case 1:
			blob = fmt.Sprintf("other/%d", s.rng.IntN(1000))
			fallthrough
		default:
			etag = s.account.Put(container, inventory.Blob{Name: blob, Length: s.rng.Int64N(100)}).ETag
		}
		s.was = append(s.was, change{container + "/" + blob, etag, s.clock.Load()})
	}
}

// vanish deletes blobs at random without events. Only a sweep finds that they are gone.
func (s *storage) vanish(n int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	paths := slices.Sorted(maps.Keys(s.account.Blobs()))
	s.rng.Shuffle(len(paths), func(i, k int) { paths[i], paths[k] = paths[k], paths[i] })
	for _, path := range paths[:min(n, len(paths))] {
		s.clock.Add(int64(time.Millisecond))
		container, blob, _ := strings.Cut(path, "/")
		s.account.Lose(container, blob)
		s.was = append(s.was, change{path: path, at: s.clock.Load()})
	}
}

// until returns the etags of the blobs that there were at a time.
func (s *storage) until(at int64) map[string]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	etags := map[string]string{}
	for _, c := range s.was {
		if c.at > at {
			break
		}
		etags[c.path] = c.etag
		if c.etag == "" {
			delete(etags, c.path)
		}
	}
	return etags
}

// late says that the events of a change come later.
func (s *storage) late(account.Change) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return !s.frozen && s.rng.IntN(4) == 0
}

// head returns how long a HEAD request takes.
func (s *storage) head() time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.slow == 0 {
		return 0
	}
	return time.Duration(s.rng.Int64N(s.slow))
}

// hasten answers HEAD requests at once from now on.
func (s *storage) hasten() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.slow = 0
}

// freeze ends all changes, or lets them go on.
func (s *storage) freeze(frozen bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.frozen = frozen
}

// listed returns the account as an instance sees it. It changes between two requests.
func (s *storage) listed(i *instance) inventory.Store {
	size := 5 + int(i.plan.Seed%60)
	return &account.Store{Account: s.account, Size: func(limit int) int { return min(limit, size) },
		Before: func(ctx context.Context, op string, _ inventory.Query) error {
			s.change(2)
			if op == "head" {
				if err := pause.For(ctx, s.head()); err != nil {
					return err
				}
			}
			return i.window.request(ctx)
		}}
}

// keepKeys creates the topics, without retention: else a sweep is refused.
func (w *world) keepKeys(ctx context.Context) {
	names := []string{topicName}
	if w.plan.ByContainer {
		names = nil
		for c := range containers {
			names = append(names, fmt.Sprintf("%s-c%d", topicName, c))
		}
	}
	_, err := w.admin.CreateTopics(ctx, int32(w.plan.Partitions), 1, map[string]*string{"retention.ms": new("-1")},
		names...)
	w.must(err)
}

// publish appends what has happened to the feed.
func (w *world) publish() {
	_, err := w.storage.account.Publish(context.Background(), w.feed, w.storage.late, w.storage.traced.publish)
	w.must(err)
}

// sweeping is a request for a scan with a sweep.
const sweeping = 2

// request asks for a scan, or to cancel one, and returns its ID.
func (w *world) request(n int) (id string, err error) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r := offsets.Request{ID: fmt.Sprintf("scan%d", w.links), Time: w.now(), Sweep: n%2 == 0}
	if s := w.state(); s != nil {
		r.Epoch = s.Epoch
		if f := s.Frontier; n%5 == 0 && f != nil && f.Scan.Active() {
			r.ID, r.Cancel = f.Scan.ID, true
		}
	}
	w.links++
	err = offsets.Ask(ctx, w.judge.cl, plain.StateTopic(name), r)
	w.logf("request %+v: %v", r, err)
	return r.ID, err
}

// repair makes the topics the account again, whatever a seek or damage has left out, and waits for it.
func (w *world) repair() (whole bool) {
	w.storage.turn(w.feed.Segment().Add(time.Hour)) // all of it is resolved
	id, err := w.request(sweeping)
	w.must(err)
	for limit := time.Now().Add(settleLimit); ; time.Sleep(time.Second) {
		s := w.state()
		switch {
		case s == nil || s.Frontier == nil || s.Frontier.Scan == nil || s.Frontier.Scan.ID != id:
		case s.Frontier.Scan.Active():
		default:
			return w.settle(limit)
		}
		if time.Now().After(limit) {
			w.fail("stuck: %s after it was asked for, scan %s is not over", settleLimit, id)
			return false
		}
	}
}

// scans reports whether a scan is under way, or asked for.
func (w *world) scans() bool {
	s := w.state()
	return s == nil || s.Frontier != nil && (s.Frontier.Scan.Active() || s.Requested() != nil)
}

// row is what a partition says last of a key.
type row struct{ updated, etag string }

// promised checks what the last marker promises: the records up to its time make the table that the account was then. A
// seek, lost history, dead letters and blobs that vanish leave something out.
func (j *judge) promised(f *offsets.Frontier) []string {
	damaged := func(s Step) bool { return s.Kind == Damage }
	if f.Gaps > 0 || j.plan.Repair || j.plan.DeadLetters && slices.ContainsFunc(j.plan.Steps, damaged) {
		return nil
	}
	at, err := history.ParseStored(f.Resolved)
	if err != nil {
		return []string{err.Error()}
	}
	if at == (envelope.Timestamp{}) {
		return nil
	}
	return j.differs(at.Wall, "at the last marker, ")
}

// differs returns where the table that the topics make, of the records up to a time, is not what the account was then.
// A key that has moved to another partition has a former row in the first one: the one with the highest updated counts.
func (j *judge) differs(at int64, when string) (problems []string) {
	upTo := envelope.Timestamp{Wall: at, Logical: math.MaxInt32}.String()
	table := map[string]row{}
	for l, records := range j.lanes {
		if plain.IsMarkerTopic(l.topic) {
			continue
		}
		last := map[string]row{}
		for _, r := range records {
			var path []string
			var value struct {
				After   *struct{ Etag string }
				Updated string
			}
			if r.Key == nil || json.Unmarshal(r.Key, &path) != nil || json.Unmarshal(r.Value, &value) != nil ||
				value.Updated > upTo {
				continue
			}
			now := row{updated: value.Updated}
			if value.After != nil {
				now.etag = value.After.Etag
			}
			last[path[0]] = now
		}
		for path, now := range last {
			if now.updated >= table[path].updated {
				table[path] = now
			}
		}
	}
	blobs := j.storage.until(at)
	for path, etag := range blobs {
		container, _, _ := strings.Cut(path, "/")
		if len(j.plan.Containers) > 0 && !slices.Contains(j.plan.Containers, container) {
			continue
		}
		if table[path].etag != etag {
			problems = append(problems,
				fmt.Sprintf("%s%s: the topic has etag %q, the account %q", when, path, table[path].etag, etag))
		}
	}
	for path, last := range table {
		if blobs[path] == "" && last.etag != "" {
			problems = append(problems, when+path+": the account does not have it")
		}
	}
	return problems
}

// barred checks that no marker is below the end of the initial scan.
func (j *judge) barred(f *offsets.Frontier) (problems []string) {
	bar, _ := f.Scan.Barred()
	for l, records := range j.lanes {
		for _, r := range records {
			var marker struct{ Resolved string }
			if r.Key != nil || r.Offset < j.from[l] {
				continue
			}
			if json.Unmarshal(r.Value, &marker) == nil && marker.Resolved < bar {
				problems = append(problems,
					fmt.Sprintf("%s, partition %d: a marker at %s, and the initial scan ended at %s",
						strings.TrimSuffix(l.topic, ".resolved"), l.partition, marker.Resolved, bar))
			}
		}
	}
	return problems
}
