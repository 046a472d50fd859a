package bridge

import (
	"context"
	"encoding/json"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/history"
	"blobfeed/internal/pause"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// ask writes a request.
func ask(t *testing.T, o Options, r offsets.Request) {
	t.Helper()
	cl, err := kgo.NewClient(o.Kafka.Client...)
	must(t, err)
	defer cl.Close()
	must(t, offsets.Ask(t.Context(), cl, o.offsetsTopic(), r))
}

// listerOf returns the lease that lists a container.
func listerOf(o Options, container string) int32 {
	return offsets.LeaseOf(container, int(o.Kafka.Leases))
}

// isDone returns a condition: the scan is done.
func isDone(id string) func(*offsets.State) bool {
	return func(s *offsets.State) bool { return scanOf(s) != nil && scanOf(s).ID == id && scanOf(s).Done }
}

// A scan that follows the initial one does not lift its bar: no marker is below the end of the initial one.
func TestMarkersAfterTwoScans(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]bool{"exactly once": true, "at least once": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 2, 50)
			c := broker(t)
			o := w.options(c)
			o.Kafka.Transactional, o.Feed.InitialScan = transactional, ScanYes
			w.listsLate()
			live(t, o)
			first := awaitState(t, o, "the initial scan is done", func(s *offsets.State) bool {
				return scanOf(s) != nil && scanOf(s).Done
			}).Frontier.Scan
			ask(t, o, offsets.Request{ID: "again", Time: time.Unix(0, 0)}) // its clock is wrong
			awaitState(t, o, "another scan is done", isDone("again"))
			last := ""
			for last < first.Listed {
				w.next()
				last = fmt.Sprintf("%d", w.clock.Load()-int64(time.Hour))
			}
			s := awaitState(t, o, "a marker", func(s *offsets.State) bool {
				return s.Frontier != nil && s.Frontier.Resolved != "" && !s.Frontier.Owed
			})
			if bar, _ := s.Frontier.Scan.Barred(); bar != first.Listed {
				t.Errorf("no marker is to be below %s, want %s", bar, first.Listed)
			}
			consume(t, c, noted(func(r verify.Record) {
				var marker struct{ Resolved string }
				if r.Key == nil && json.Unmarshal(r.Value, &marker) == nil && marker.Resolved < first.Listed {
					t.Errorf("a marker at %s, and the initial scan ended at %s", marker.Resolved, first.Listed)
				}
			}))
		})
	}
}

// A scan is over when the last lease has stopped, and nothing is delivered before: it may have a page in memory.
func TestCancelWaits(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 3, 100)
	c := broker(t)
	o := w.options(c)
	o.Pace.ScanRound = time.Minute
	live(t, o)
	awaitDrained(t, o, w)
	answer, asked := make(chan struct{}), make(chan struct{}, 10)
	answered := sync.OnceFunc(func() { close(answer) })
	defer answered()
	w.store.Before = func(_ context.Context, op string, q inventory.Query) error {
		if op == "list" && listerOf(o, q.Container) != 0 {
			asked <- struct{}{}
			<-answer // whatever becomes of the scan
		}
		return nil
	}
	ask(t, o, offsets.Request{ID: "slow", Time: time.Now()})
	<-asked
	ask(t, o, offsets.Request{ID: "slow", Time: time.Now(), Cancel: true})
	s := awaitState(t, o, "it is to be cancelled", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Cancelled
	})
	if !s.Frontier.Scan.Lists() {
		t.Errorf("it is over before the answer: %+v", s.Frontier.Scan)
	}
	answered()
	awaitState(t, o, "it is cancelled", isDone("slow"))
	w.change(10)
	w.publish(false)
	awaitDrained(t, o, w)
	ask(t, o, offsets.Request{ID: "slow", Time: time.Now(), Cancel: true}) // twice
	ask(t, o, offsets.Request{ID: "next", Time: time.Now()})
	awaitState(t, o, "the next one is done", isDone("next"))
	w.compare(c)
}

// A topic that a scan has found is the frontier's when events are delivered again: the cursor forgets it in the next
// segment, and each partition with records gets the markers (I6).
func TestScanFindsTopics(t *testing.T) {
	t.Parallel()
	for name, round := range map[string]time.Duration{"in many rounds": 100 * time.Millisecond, "in one": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 6, 200)
			o := w.options(broker(t))
			o.Topics.Names = byTemplate(t, "t-{container}")
			o.Pace.ScanRound = round
			w.store.Size = func(limit int) int { return min(limit, 50) }
			w.store.Before = func(ctx context.Context, _ string, _ inventory.Query) error {
				return pause.For(ctx, 30*time.Millisecond)
			}
			live(t, o)
			awaitDrained(t, o, w)
			ask(t, o, offsets.Request{ID: "all", Time: time.Now()})
			s := awaitState(t, o, "the scan is done", func(s *offsets.State) bool {
				if scan := scanOf(s); scan.Active() && scan.Phase == offsets.ScanDelivers {
					reportUnknownTopics(t, s)
				}
				return isDone("all")(s)
			})
			if rounds := s.Frontier.Scan.Round; round < time.Second && rounds < 2 {
				t.Errorf("%d rounds", rounds)
			}
			for _, name := range w.names {
				if s.Frontier.Topics["t-"+name] == 0 {
					t.Errorf("the frontier does not know the topic of %s", name)
				}
			}
		})
	}
}

// reportUnknownTopics fails for topics with rows of this round that the frontier does not know.
func reportUnknownTopics(t *testing.T, s *offsets.State) {
	t.Helper()
	scan := scanOf(s)
	for _, cursor := range s.Cursors {
		if cursor == nil {
			continue
		}
		for topic := range cursor.Pins {
			if s.Frontier.Topics[topic] == 0 && cursor.Listing(scan).Over == scan.Round {
				t.Errorf("round %d: the frontier does not know topic %s", scan.Round, topic)
			}
		}
	}
}

// Containers that the filter leaves out cost no request.
func TestScanOfSelectedContainers(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 4, 10)
	o := w.options(broker(t))
	o.Feed.InitialScan, o.Feed.Filter.Containers = ScanYes, []string{"c1"}
	w.store.Before = func(_ context.Context, op string, q inventory.Query) error {
		if op == "list" && q.Container != "c1" {
			t.Errorf("it lists container %s", q.Container)
		}
		return nil
	}
	must(t, runOnce(t, o))
	awaitState(t, o, "the scan is done", func(s *offsets.State) bool {
		return scanOf(s) != nil && scanOf(s).Done && scanOf(s).Rows == 10 && scanOf(s).Containers == 1
	})
}

// Where the scan finds nothing, the feed is delivered behind it with its markers.
func TestScanOfNothing(t *testing.T) {
	t.Parallel()
	for name, change := range map[string]func(*Options){
		"no container":                func(o *Options) { o.Feed.Inventory = &account.Store{Account: account.New(nil)} },
		"the filter leaves all out":   func(o *Options) { o.Feed.Filter.Containers = []string{"none"} },
		"a container without a blob":  func(o *Options) { o.Feed.Inventory = &account.Store{Account: filled(1, 0)} },
		"another container is listed": func(o *Options) { o.Feed.Filter.Containers = []string{"photos00"} },
	} {
		t.Run(name, func(t *testing.T) {
			c := broker(t)
			o, _ := options(t, c, writeFeed(t, feedsim.Spec{EventsPerSegment: 6, Segments: 2, LeaveOpen: true}))
			o.Feed.InitialScan, o.Feed.AccountURL, o.Pace.ScanRequests = ScanYes, "https://a/", 4
			o.Feed.Inventory = &account.Store{Account: filled(2, 3)}
			change(&o)
			must(t, runOnce(t, o))
			s := awaitState(t, o, "the scan is done", func(s *offsets.State) bool {
				return scanOf(s) != nil && scanOf(s).Done
			})
			bar, always := s.Frontier.Scan.Barred()
			if at, err := history.ParseTime(bar); err != nil || always || time.Since(time.Unix(0, at.Wall)) > time.Minute {
				t.Errorf("no marker is to be below %q: %v", bar, err)
			}
		})
	}
}

// A request without an answer does not hold up the end of a scan that is cancelled, whichever lease makes it: lease 0
// also has to see that it is to be cancelled.
func TestCancelEndsListing(t *testing.T) {
	t.Parallel()
	for _, lease := range []int32{0, 1} {
		t.Run(fmt.Sprintf("lease %d", lease), func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, 6, 10)
			o := w.options(broker(t))
			o.Pace.ScanRound = time.Hour
			live(t, o)
			awaitDrained(t, o, w)
			asked := make(chan struct{}, 100)
			w.store.Before = func(ctx context.Context, op string, q inventory.Query) error {
				if op == "list" && listerOf(o, q.Container) == lease {
					asked <- struct{}{}
					<-ctx.Done()
				}
				return ctx.Err()
			}
			ask(t, o, offsets.Request{ID: "all", Time: time.Now()})
			<-asked
			ask(t, o, offsets.Request{ID: "all", Time: time.Now(), Cancel: true})
			awaitState(t, o, "it is cancelled", isDone("all"))
			if n := w.recorder.failures(""); n > 0 {
				t.Errorf("%d failures", n)
			}
		})
	}
}
