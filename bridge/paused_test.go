package bridge

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Without transactions nothing stops an instance that was paused in the middle of a commit, and wakes when
// others have delivered more. Its old records stand behind newer ones then; its document says so, never counts,
// and makes the bridge deliver again from there, so that every key ends on its newest record. Markers do not
// fall.
func TestPausedOwnerWrites(t *testing.T) {
	t.Parallel()
	hour := func(m *memory, name, status, a, b string) {
		at := "2026-01-01T" + name[11:13] + ":10:00Z"
		m.segment(name, status, 60, map[int][]happened{0: {{a, at, "a"}}, 1: {{b, at, "b"}}})
	}
	for what, lease := range map[string]int32{"cursor": 1, "frontier": 0} {
		t.Run(what, func(t *testing.T) {
			m := newMemory()
			hour(m, "2026/01/01/0000", "Finalized", "1", "2")
			hour(m, "2026/01/01/0100", "Finalized", "3", "4")
			hour(m, "2026/01/01/0200", "Publishing", "5", "6")
			c := broker(t)
			o, _ := over(t, c, m)
			o.Kafka.Transactional, o.Pace.BundleBytes, o.Records.EpochHeader = false, 0, true
			must(t, runOnce(t, o))
			before := awaitState(t, o, "the first instance has written",
				func(s *offsets.State) bool { return s.Frontier != nil && s.Cursors[1] != nil })
			old := tail(t, c)
			o.Instance = "two"
			live(t, o)
			hour(m, "2026/01/01/0200", "Finalized", "5", "6")
			hour(m, "2026/01/01/0300", "Publishing", "7", "8")
			delivered := func(epoch int64) func(s *offsets.State) bool {
				return func(s *offsets.State) bool {
					f := s.Frontier
					return f != nil && s.Epoch == epoch && !f.Owed && f.Current.String() == "2026/01/01/0300" &&
						s.Cursors[0].At(f.Current, 0).Offset > 0 && s.Cursors[1].At(f.Current, 1).Offset > 0
				}
			}
			awaitState(t, o, "the second instance has delivered all", delivered(0))
			newest := tail(t, c)
			for _, r := range old.last { // the first one wakes up
				produceRecord(t, o, &kgo.Record{
					Topic: r.Topic, Partition: r.Partition, Key: r.Key, Value: r.Value, Timestamp: r.Timestamp,
				})
			}
			if stale := tail(t, c); string(stale.last["c/a"].Value) == string(newest.last["c/a"].Value) {
				t.Fatal("the old record is not behind the newer one")
			}
			if what == "cursor" {
				write(t, o, lease, what, before.Cursor(lease))
			} else {
				write(t, o, lease, what, before.Frontier)
			}
			awaitState(t, o, "all is delivered again", delivered(1))
			after := tail(t, c)
			for key, want := range newest.last {
				if got := after.last[key]; string(got.Value) != string(want.Value) {
					t.Errorf("%s ends on %s, want %s", key, got.Value, want.Value)
				}
			}
			if after.fell {
				t.Error("a marker is below one before it")
			}
			for _, r := range readAll(t, c, topic) { // what was complete before the old document needs no repetition
				if header(r, "epoch") == "1" && strings.HasPrefix(header(r, "position"), "2026/01/01/0000/") {
					t.Errorf("%s is delivered again", header(r, "position"))
				}
			}
			if epoch := header(after.last["c/a"], "epoch"); epoch != "1" {
				t.Errorf("the record that is delivered again has epoch %q", epoch)
			}
		})
	}
}

// A paused instance has written late, and nobody runs. A run that ends when all is delivered, or at END_TIME, repairs
// that before it ends, though it finds nothing new.
func TestPausedOwnerWritesBetweenRuns(t *testing.T) {
	t.Parallel()
	for what, end := range map[string]envelope.Timestamp{"once": {}, "end time": {Wall: hourOf(2).UnixNano()}} {
		t.Run(what, func(t *testing.T) {
			m := newMemory()
			for hour, id := range map[string]string{"0000": "1", "0100": "2", "0200": "3"} {
				m.segment("2026/01/01/"+hour, "Finalized", 60,
					map[int][]happened{1: {{id, "2026-01-01T" + hour[:2] + ":10:00Z", "a"}}})
			}
			c := broker(t)
			o, _ := over(t, c, m)
			o.Feed.End = end
			o.Kafka.Transactional, o.Pace.BundleBytes = false, 0
			must(t, runOnce(t, o))
			newest := tail(t, c)
			var old *kgo.Record
			for _, r := range readAll(t, c, topic) {
				if old == nil && r.Key != nil {
					old = r
				}
			}
			produceRecord(t, o, &kgo.Record{Topic: topic, Partition: old.Partition, Key: old.Key, Value: old.Value})
			stale := &offsets.Cursor{Version: 2, Term: -1}
			stale.Advance(segmentOf(t, "2026/01/01/0000"), 1, source.ShardPosition{})
			write(t, o, 1, "cursor", stale)
			must(t, runOnce(t, o))
			after := tail(t, c)
			for key, want := range newest.last {
				if got := after.last[key]; string(got.Value) != string(want.Value) {
					t.Errorf("%s ends on %s, want %s", key, got.Value, want.Value)
				}
			}
		})
	}
}

// The old frontier of a paused instance is all that compaction has left, behind cursors of later segments.
// Without transactions that can be; the bridge delivers again from there, and promises no less than before.
func TestStaleFrontierIsLast(t *testing.T) {
	m := newMemory()
	for hour, id := range map[string]string{"0000": "1", "0100": "2", "0200": "3"} {
		m.segment("2026/01/01/"+hour, "Finalized", 60,
			map[int][]happened{0: nil, 1: {{id, "2026-01-01T" + hour[:2] + ":10:00Z", "a"}}})
	}
	m.segment("2026/01/01/0300", "Publishing", 60, map[int][]happened{1: {{"4", "2026-01-01T03:10:00Z", "a"}}})
	c := broker(t)
	o, _ := over(t, c, m)
	o.Kafka.Transactional, o.Pace.BundleBytes = false, 0
	must(t, runOnce(t, o))
	newest := tail(t, c)
	s := awaitState(t, o, "all is delivered", func(s *offsets.State) bool {
		return s.Frontier != nil && s.Cursors[1] != nil && s.Cursors[1].Segment.String() == "2026/01/01/0300"
	})
	old := *s.Frontier
	old.Completed, old.Current = segmentOf(t, "2026/01/01/0000"), segmentOf(t, "2026/01/01/0100")
	old.Resolved = "1767228300000000000.0000000000"
	adm := admin(t, c)
	end, err := adm.ListEndOffsets(t.Context(), o.offsetsTopic())
	must(t, err)
	last, _ := end.Lookup(o.offsetsTopic(), 0)
	_, err = adm.DeleteRecords(t.Context(),
		kadm.Offsets{o.offsetsTopic(): {0: {Topic: o.offsetsTopic(), Partition: 0, At: last.Offset}}})
	must(t, err)
	write(t, o, 0, "frontier", &old)
	live(t, o)
	after := awaitState(t, o, "all is delivered again", func(now *offsets.State) bool {
		return now.Frontier != nil && now.Epoch == 1 && now.Frontier.Current.String() == "2026/01/01/0300" &&
			!now.Frontier.Owed &&
			now.Cursors[1].At(now.Frontier.Current, 1).Offset > 0
	})
	if after.Frontier.Resolved != s.Frontier.Resolved {
		t.Errorf("resolved is %s, was %s", after.Frontier.Resolved, s.Frontier.Resolved)
	}
	got := tail(t, c)
	if got.fell || string(got.last["c/a"].Value) != string(newest.last["c/a"].Value) {
		t.Errorf("a marker fell: %t; the key ends on %s", got.fell, got.last["c/a"].Value)
	}
}

func segmentOf(t *testing.T, name string) source.Segment {
	t.Helper()
	seg, err := source.ParseSegment(name)
	must(t, err)
	return seg
}

// ends is how the topic ends: the last record of each key, and whether a marker fell.
type ends struct {
	last map[string]*kgo.Record
	fell bool
}

// tail reads the topic of records to its end.
func tail(t *testing.T, c *kfake.Cluster) ends {
	t.Helper()
	e := ends{last: map[string]*kgo.Record{}}
	resolved := map[int32]string{}
	for _, r := range readAll(t, c, topic) {
		if r.Key == nil {
			marker := header(r, "resolved")
			e.fell = e.fell || marker < resolved[r.Partition]
			resolved[r.Partition] = marker
			continue
		}
		var key []string
		must(t, json.Unmarshal(r.Key, &key))
		e.last[key[0]] = r
	}
	return e
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// readAll returns all records of a topic, partition by partition.
func readAll(t *testing.T, c *kfake.Cluster, topic string) (all []*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	must(t, err)
	defer cl.Close()
	listed, err := kadm.NewClient(cl).ListEndOffsets(t.Context(), topic)
	must(t, err)
	left := map[int32]int64{}
	listed.Each(func(o kadm.ListedOffset) {
		if o.Offset > 0 {
			left[o.Partition] = o.Offset
		}
	})
	for len(left) > 0 {
		cl.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) {
			if !r.Attrs.IsControl() {
				all = append(all, r)
			}
			if r.Offset+1 >= left[r.Partition] {
				delete(left, r.Partition)
			}
		})
		must(t, t.Context().Err())
	}
	return all
}

// write puts a document into the offsets topic.
func write(t *testing.T, o Options, lease int32, key string, doc any) {
	t.Helper()
	text, err := json.Marshal(doc)
	must(t, err)
	produceRecord(t, o, &kgo.Record{Topic: o.offsetsTopic(), Partition: lease, Key: []byte(key), Value: text})
}

func produceRecord(t *testing.T, o Options, r *kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(append(o.Kafka.Client, kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
	must(t, err)
	defer cl.Close()
	must(t, cl.ProduceSync(t.Context(), r).FirstErr())
}
