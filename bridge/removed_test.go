package bridge

import (
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/offsets"
)

var feedBegins = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// threeHours is a feed whose first two segments are about to be removed; events 2 and 3 of them may be lost.
func threeHours() *memory {
	m := newMemory()
	m.segment("2026/01/01/0000", "Finalized", 60,
		map[int][]happened{0: {{"1", "2026-01-01T00:10:00Z", "a"}}, 1: {{"2", "2026-01-01T00:10:00Z", "b"}}})
	m.segment("2026/01/01/0100", "Finalized", 60, map[int][]happened{0: {{"3", "2026-01-01T01:10:00Z", "a"}}})
	m.segment("2026/01/01/0200", "Finalized", 60, map[int][]happened{0: {{"4", "2026-01-01T02:10:00Z", "a"}}})
	m.segment("2026/01/01/0300", "Publishing", 60, map[int][]happened{0: {{"5", "2026-01-01T03:10:00Z", "a"}}})
	return m
}

// retention removes them.
func retention(m *memory) {
	for _, hour := range []string{"0000", "0100"} {
		for _, of := range []string{"idx/segments", "log/00", "log/01"} {
			m.remove(of + "/2026/01/01/" + hour)
		}
	}
}

// Retention removes segments while they are delivered, and their manifests were read before. Whatever the
// bridge was about, the loss is reported, once.
func TestRemovedMeanwhile(t *testing.T) {
	t.Parallel()
	const first = "/2026/01/01/0000"
	for name, c := range map[string]struct {
		held string // what is asked for just before the removal, and first refused
		sent int    // events until then
		seen string // events after all
		end  time.Duration
	}{
		"a shard is not begun":           {"log/01" + first, 1, "1 4 5", 0},
		"the next segment is not named":  {"idx/segments/2026/01/01/", 2, "1 2 4 5", 0},
		"the end is before what is left": {"idx/segments/2026/01/01/", 2, "1 2", 90 * time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			m := threeHours()
			var held, begun atomic.Bool
			m.onList = func(prefix string) error {
				if held.Load() && begun.Load() && strings.HasPrefix(prefix, c.held) {
					return errors.New("refused")
				}
				return nil
			}
			var once sync.Once
			m.onRead = func(name string) error {
				if strings.HasPrefix(name, "log/00"+first) {
					once.Do(func() { begun.Store(true) })
				}
				return nil
			}
			held.Store(true)
			if strings.HasPrefix(c.held, "log") {
				begun.Store(true)
			}
			b := broker(t)
			o, r := over(t, b, m)
			o.Pace.BundleBytes, o.Feed.SkipGaps = 0, true
			if c.end > 0 {
				o.Feed.End, o.Feed.RescanGaps = envelope.Timestamp{Wall: feedBegins.Add(c.end).UnixNano()}, true
			}
			live(t, o)
			r.await(t, func(n Commit) bool { return n.Emitted == c.sent })
			r.awaitFailure(t, "refused")
			retention(m)
			held.Store(false)
			r.await(t, func(n Commit) bool { return n.Emitted == len(strings.Fields(c.seen)) })
			awaitState(t, o, "the gap is counted",
				func(s *offsets.State) bool { return s.Frontier != nil && s.Frontier.Gaps == 1 })
			if c.end > 0 { // nothing would carry a scan out behind it
				awaitState(t, o, "the end", func(s *offsets.State) bool {
					return s.Frontier != nil && s.Frontier.Ended &&
						scanOf(s) != nil && scanOf(s).Done && scanOf(s).Cancelled
				})
			}
			seen := &order{}
			consume(t, b, seen)
			if ids := seen.sortedIDs(); ids != c.seen {
				t.Errorf("events %s, want %s", ids, c.seen)
			}
		})
	}
}

// The same in segments that are read ahead: the listing of one comes after its manifest, and the removal in between.
func TestRemovedWhileReadAhead(t *testing.T) {
	m := threeHours()
	read := make(chan struct{})
	var once, removal sync.Once
	m.onRead = func(name string) error {
		if strings.HasPrefix(name, "log/00/2026/01/01/0000") {
			once.Do(func() { close(read) })
		}
		return nil
	}
	m.onList = func(prefix string) error {
		if strings.HasPrefix(prefix, "log/00/2026/01/01/0100") {
			<-read
			removal.Do(func() {
				m.remove("idx/segments/2026/01/01/0000")
				m.remove("idx/segments/2026/01/01/0100")
				m.remove("log/00/2026/01/01/0100")
			})
		}
		return nil
	}
	b := broker(t)
	o, r := over(t, b, m)
	must(t, runOnce(t, o))
	seen := &order{}
	consume(t, b, seen)
	if ids := seen.sortedIDs(); ids != "4 5" { // as if it began now
		t.Errorf("events %s, as if there had been no others between them", ids)
	}
	if r.failures("") > 0 {
		t.Errorf("what retention removed before it was delivered is no failure: %q", r.failed)
	}
}

// A topic that was found in a segment of which the rest is lost gets the marker that tells of the loss (I6).
func TestGapKeepsFoundTopics(t *testing.T) {
	m := newMemory()
	m.segment("2026/01/01/0000", "Publishing", 60, map[int][]happened{0: {{"1", "2026-01-01T00:10:00Z", "a"}}})
	c := broker(t)
	o, _ := over(t, c, m)
	o.Topics.Names = byTemplate(t, "t-{container}")
	must(t, runOnce(t, o))
	m.segment("2026/01/01/0100", "Finalized", 60, map[int][]happened{0: nil})
	m.segment("2026/01/01/0200", "Publishing", 60, map[int][]happened{0: nil})
	m.remove("idx/segments/2026/01/01/0000")
	m.remove("log/00/2026/01/01/0000")
	o.Feed.SkipGaps, o.Pace.BundleBytes = true, 0
	must(t, runOnce(t, o))
	var gaps []string
	data, markers := consumeAll(t, c, []string{"t-c"}, told(&gaps))
	if data != 1 || len(gaps) != partitions || markers != 2*partitions { // of the lost one, and of the one behind it
		t.Errorf("%d records, %d markers, gaps %q", data, markers, gaps)
	}
}

// A segment's manifest goes while lease 1 has the events of its shard in memory, and ON_GAP=continue is set:
// lease 1 delivers them, and the frontier waits for that (I4, I11).
func TestGapWaitsForOtherLeases(t *testing.T) {
	t.Parallel()
	m := threeHours()
	m.replace("idx/segments/2026/01/01/0000/meta.json", "Finalized", "Publishing") // so that it is read again
	removed, looked := make(chan struct{}), make(chan struct{})
	var looks atomic.Int32
	var once sync.Once
	release := sync.OnceFunc(func() { close(looked) })
	m.onRead = func(name string) error {
		switch {
		case strings.HasPrefix(name, "log/01/2026/01/01/0000"):
			once.Do(func() {
				m.remove("idx/segments/2026/01/01/0000")
				close(removed)
			})
			<-looked
		case strings.HasPrefix(name, "idx/segments/2026/01/01/0000"):
			select {
			case <-removed:
				if looks.Add(1) == 60 { // lease 0 had every chance to leave it behind
					release()
				}
			default:
			}
		case strings.HasPrefix(name, "log/00/2026/01/01/0200"): // it did
			release()
		}
		return nil
	}
	c := broker(t)
	o, r := over(t, c, m)
	o.Pace.BundleBytes, o.Feed.SkipGaps = 0, true
	live(t, o) // not --once, which reads the chunk as well
	r.await(t, func(c Commit) bool { return c.Emitted == 5 })
	seen := &order{}
	consume(t, c, append(promises(), seen)...)
	if ids := seen.sortedIDs(); ids != "1 2 3 4 5" {
		t.Errorf("events %s", ids)
	}
}

// Retention removes a chunk between its listing and its reading. A new listing says so; then it is lost history.
func TestChunkRemovedBeforeReading(t *testing.T) {
	t.Parallel()
	for name, skip := range map[string]bool{"fail": false, "continue": true} {
		t.Run(name, func(t *testing.T) {
			m := newMemory()
			m.segment("2026/01/01/0000", "Finalized", 60, map[int][]happened{0: {{"1", "2026-01-01T00:10:00Z", "a"}}})
			m.segment("2026/01/01/0100", "Publishing", 60, map[int][]happened{0: {{"2", "2026-01-01T01:10:00Z", "a"}}})
			const chunk = "log/00/2026/01/01/0000/00000.avro"
			m.blobs["log/00/2026/01/01/0000/00001.avro"] = m.blobs[chunk] // what is left
			var once sync.Once
			m.onRead = func(name string) error {
				if name == chunk {
					once.Do(func() { m.remove(chunk) })
				}
				return nil
			}
			c := broker(t)
			o, _ := over(t, c, m)
			o.Pace.BundleBytes, o.Feed.SkipGaps = 0, skip
			err := runOnce(t, o)
			var gap *history.GapError
			if !skip {
				if !errors.As(err, &gap) || !strings.Contains(gap.Chunk, "00000.avro") {
					t.Errorf("err = %v", err)
				}
				return
			}
			must(t, err)
			var gaps []string
			if data, _ := consume(t, c, told(&gaps)); data != 2 || len(gaps) != partitions {
				t.Errorf("%d records, gaps %q", data, gaps)
			}
		})
	}
}
