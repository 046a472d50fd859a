package bridge

import (
	"encoding/json"
	"errors"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/offsets"
	"blobfeed/source"
)

// Without transactions nothing stops an instance that was paused in the middle of a commit, and wakes when others have long gone
// on. What it writes is older than what is there; events may come again, and the bridge goes on.
func TestPausedOwnerWrites(t *testing.T) {
	for _, what := range []string{"cursor", "frontier"} {
		t.Run(what, func(t *testing.T) {
			m := newMemory()
			hour := func(name, status, a, b string) {
				at := "2026-01-01T" + name[11:13] + ":10:00Z"
				m.segment(name, status, 60, map[int][]happened{0: {{a, at, "a"}}, 1: {{b, at, "b"}}})
			}
			hour("2026/01/01/0000", "Finalized", "1", "2")
			hour("2026/01/01/0100", "Finalized", "3", "4")
			hour("2026/01/01/0200", "Publishing", "5", "6")
			var held atomic.Bool // event 3, so that lease 1 has done the segment of 4 and waits
			held.Store(what == "cursor")
			m.onRead = func(name string) error {
				if held.Load() && strings.HasPrefix(name, "log/00/2026/01/01/0100") {
					return errors.New("held")
				}
				return nil
			}
			c := broker(t)
			o, _ := over(t, c, m)
			o.Transactional, o.BundleBytes = false, 0
			live(t, o)
			second, err := source.ParseSegment("2026/01/01/0100")
			must(t, err)
			current := func(name string) func(*offsets.State) bool {
				return func(s *offsets.State) bool { return s.Frontier != nil && s.Frontier.Current.String() == name }
			}
			if what == "cursor" {
				s := awaitState(t, o, "lease 1 waits", func(s *offsets.State) bool { return s.Cursors[1] != nil && s.Cursors[1].Finished(second) })
				late := s.Cursor(1)
				late.Done, late.Owner = false, "former"
				write(t, o, 1, what, late)
				awaitState(t, o, "lease 1 has done it again", func(s *offsets.State) bool {
					return s.Cursors[1] != nil && s.Cursors[1].Finished(second) && s.Cursors[1].Time.After(late.Time)
				})
				held.Store(false)
				awaitState(t, o, "the next one is being delivered", current("2026/01/01/0200"))
				return
			}
			s := awaitState(t, o, "all is delivered", func(s *offsets.State) bool {
				return current("2026/01/01/0200")(s) && s.Cursors[0] != nil && s.Cursors[1] != nil && s.Cursors[0].Segment == s.Frontier.Current && s.Cursors[1].Segment == s.Frontier.Current
			})
			late := *s.Frontier
			late.Completed, late.Current = source.SegmentAt(second.Time().Add(-3600e9)), second
			write(t, o, 0, what, &late)
			hour("2026/01/01/0200", "Finalized", "5", "6")
			hour("2026/01/01/0300", "Publishing", "7", "8")
			awaitState(t, o, "the next one is being delivered", current("2026/01/01/0300"))
		})
	}
}

// write puts a document into the offsets topic.
func write(t *testing.T, o Options, lease int32, key string, doc any) {
	t.Helper()
	cl, err := kgo.NewClient(append(o.Client, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	must(t, err)
	defer cl.Close()
	text, err := json.Marshal(doc)
	must(t, err)
	must(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: o.offsetsTopic(), Partition: lease, Key: []byte(key), Value: text}).FirstErr())
}
