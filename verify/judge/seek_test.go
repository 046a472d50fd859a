package judge

import (
	"context"
	"errors"
	"fmt"
	"io"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/offsets"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// Nothing says of a copy which events a seek has brought again, but the copy itself: that a key ends on an older event
// than before is found, and that the seek is still repeating is no fault.
func TestCopyAfterASeek(t *testing.T) {
	for _, settings := range []string{"", "RESOLVED_TO=topic", "HEADERS=none", "DELIVERY=at_least_once"} {
		t.Run(settings, func(t *testing.T) {
			s := stage(t, t, form{settings: settings, then: func(t *testing.T, _ *liveFeed) { seek(t, "2026/01/01/0100") }})
			lost := faultNamed("the newest of a key does not come again")
			c := s.clone()
			if !lost.put(s.victim(c)) {
				t.Fatal("there is no place for it")
			}
			rs, of := s.verify(t, c, true, true)
			if of["replay"] != Broken {
				t.Errorf("%s: not found: %s", lost.name, shown(t, rs))
			}
			s.names(t, c, rs)
			repeats := regexp.MustCompile(` in order, each once.*, but for .* that bridge seek repeats`)
			if of["order"] != "" && repeats.MatchString(shown(t, rs)) != s.base.Kafka.Transactional {
				t.Errorf("order: %s", shown(t, rs))
			}
			bounded := *s
			bounded.base = new(verification)
			*bounded.base = *s.base
			bounded.base.Bounded = true
			if rs, of := bounded.verify(t, s.clone(), false, true); of["order"] != "" &&
				!strings.Contains(shown(t, rs), " in order, each once, but for those that bridge seek repeats (") {
				t.Errorf("order: %s", shown(t, rs))
			}
			if settings == "RESOLVED_TO=topic" { // its markers would have to end, too
				return
			}
			for p, rs := range s.topics[written].records {
				at := slices.IndexFunc(rs, func(r *kgo.Record) bool { return r.Key == nil && header(r, "seek") != "" })
				step := 1
				if testing.Short() {
					step = 5
				}
				for end := at + 1; end < len(rs); end += step {
					c := s.clone()
					c.topics[written].records[p], c.topics[written].to[p] = rs[:end], rs[end].Offset
					reports, _ := s.verify(t, c, true, true)
					for _, k := range reports[0].Checks {
						if k.Name == "replay" && strings.Contains(fmt.Sprint(k.Failures), "is not the last one") {
							t.Fatalf("partition %d, up to %d of %d: %s", p, end, len(rs), shown(t, reports))
						}
					}
				}
			}
		})
	}
}

// Nobody confirms what the markers of a copy say of a seek forward. It is believed, but what is missing is counted, also
// where the marker is forged and hides a lost segment.
func TestCopySkips(t *testing.T) {
	for _, settings := range []string{
		"", "RESOLVED_TO=topic", "RESOLVED_TO=off", "HEADERS=none", "DELETES=both", "DELIVERY=at_least_once",
	} {
		t.Run(settings, func(t *testing.T) {
			s := stage(t, t, form{settings: "EVENTS=all " + settings, then: func(t *testing.T, l *liveFeed) {
				l.grow(t, 2)
				seek(t, "2026/01/01/0600")
			}})
			counted := func(c *copied, stateless bool, want int64, why string) {
				t.Helper()
				rs, of := s.verify(t, c, true, stateless)
				text := shown(t, rs)
				for _, told := range []string{
					fmt.Sprintf("in order, but for %d that are not in it (see note) (", want),
					fmt.Sprintf("note: %d events of the feed not in the topic: %s\n", want, why),
				} {
					if !strings.Contains(text, told) {
						t.Errorf("want %q", told)
					}
				}
				if f := rs[0].Feed; Verdict(rs) != nil || of["replay"] != Holds || f.Skipped != want {
					t.Errorf("stateless %t: %v, %+v: %s", stateless, Verdict(rs), f, text)
				}
			}
			const segment = 24 // events
			const unconfirmed = "its markers say that bridge seek has skipped them, and no state confirms it"
			confirmed := "bridge seek has skipped them, or they are from before the start"
			counted(s.clone(), false, 2*segment, confirmed)
			if settings == "RESOLVED_TO=off" { // nothing in the topic names the seek
				return
			}
			counted(s.clone(), true, 2*segment, unconfirmed)
			if settings != "" {
				return
			}
			c := s.clone()
			for p, rs := range c.topics[written].records {
				in := func(r *kgo.Record) bool { return strings.HasPrefix(header(r, "position"), "2026/01/01/0200/") }
				at := slices.IndexFunc(rs, in)
				forged := changed(rs[at-1], func(r *kgo.Record) { // a marker
					r.Headers = append(r.Headers, kgo.RecordHeader{
						Key: "seek", Value: []byte("2026/01/01/0200 2026/01/01/0300")})
				})
				c.topics[written].records[p] = slices.Insert(slices.DeleteFunc(rs, in), at, forged)
			}
			counted(c, true, 3*segment, unconfirmed)
			// Retention deletes the first partition up to behind the marker, and nothing of the others.
			c = s.clone()
			x := c.topics[written]
			sought := slices.IndexFunc(x.records[0], func(r *kgo.Record) bool { return header(r, "seek") != "" })
			x.from[0], x.records[0] = x.records[0][sought+1].Offset, x.records[0][sought+1:]
			rs, _ := s.verify(t, c, true, false)
			if text := shown(t, rs); Verdict(rs) != nil || rs[0].Feed.Skipped == 0 || rs[0].Feed.Skipped >= 2*segment {
				t.Errorf("retention: %v: %s", Verdict(rs), text)
			}
		})
	}
}

// names checks the failure of a key whose newest event does not come again. Its place is that of the key's last record,
// also if that one differs, and it says where the newest is in the feed.
func (s *scene) names(t *testing.T, c *copied, rs []*Report) {
	t.Helper()
	find := func(rs []*Report) (f verify.Failure) {
		for _, k := range rs[0].Checks {
			for _, x := range k.Failures {
				if strings.HasPrefix(x.Problem, "the last event is number ") {
					f = x
				}
			}
		}
		return f
	}
	f := find(rs)
	records := c.topics[written].records[f.Partition]
	ofKey := func(r *kgo.Record) bool { return string(r.Key) == f.Key }
	last := len(records) - 1
	for last > 0 && !ofKey(records[last]) {
		last--
	}
	if last < 0 || f.Topic != written || f.Offset != records[last].Offset {
		t.Fatalf("it does not name the last record of the key: %s", shown(t, rs))
	}
	var newest *kgo.Record
	for _, r := range s.topics[written].records[f.Partition] {
		if ofKey(r) {
			newest = r
		}
	}
	told := func(f verify.Failure) bool {
		at := "; in the feed it is at " + header(newest, "position")
		if id := header(newest, "ce_id"); id != "" {
			return strings.HasSuffix(f.Problem, " came before"+at+", with id "+id)
		}
		return strings.Contains(f.Problem, " came before"+at)
	}
	if !told(f) {
		t.Errorf("it does not name the place in the feed: %s", f)
	}
	records[last] = changed(records[last], func(r *kgo.Record) { r.Timestamp = r.Timestamp.Add(time.Hour) })
	if rs, _ := s.verify(t, c, true, true); !told(find(rs)) || !strings.Contains(shown(t, rs), "timestamp is ") {
		t.Errorf("the last record differs: %s", shown(t, rs))
	}
}

func faultNamed(name string) fault {
	all := faults()
	return all[slices.IndexFunc(all, func(f fault) bool { return f.name == name })]
}

// A seek back repeats the last marker on every partition, also if it ends a scan, or brings partitions into use. Verify
// relies on that.
func TestSeekOverScanAndGrowth(t *testing.T) {
	for name, c := range map[string]struct {
		meanwhile func(t *testing.T, w *world)
		lost      func(v *victim) bool
	}{
		"a scan is under way":   {beginScan, faultNamed("the newest of a key does not come again").put},
		"partitions were added": {addPartitions, loseNewest},
		"both":                  {func(t *testing.T, w *world) { beginScan(t, w); addPartitions(t, w) }, loseNewest},
	} {
		t.Run(name, func(t *testing.T) {
			w := newWorld(t, "")
			turn := func(from int) {
				for i := range 30 {
					w.Put("photos", inventory.Blob{Name: blobNamed(from + i%12).Name, Length: 1})
				}
				w.publish(t)
			}
			for range 4 {
				turn(0)
				deliver(t)
			}
			c.meanwhile(t, w)
			seek(t, "2026/01/01/0200")
			scan(t, bridge.ScanYes, w.Account)
			turn(20)
			deliver(t)
			s := &scene{topic: written, copied: copyAll(t, w.cl), base: bySettings(t, written)}
			for _, stateless := range []bool{false, true} {
				rs, of := s.verify(t, s.clone(), true, stateless)
				if text := shown(t, rs); Verdict(rs) != nil || of["replay"] != Holds ||
					!strings.Contains(text, "bridge seek moved the bridge") {
					t.Errorf("stateless %t: %v: %s", stateless, Verdict(rs), text)
				}
				lossy := s.clone()
				if !c.lost(s.victim(lossy)) {
					t.Fatal("there is no place for it")
				}
				if rs, of := s.verify(t, lossy, true, stateless); of["replay"] != Broken {
					t.Errorf("stateless %t: a loss is not found: %s", stateless, shown(t, rs))
				}
				untold := s.clone()
				records := untold.topics[written].records[1]
				for i, r := range records {
					if r.Key == nil && header(r, "seek") != "" {
						records[i] = changed(r, func(r *kgo.Record) {
							r.Headers = slices.DeleteFunc(r.Headers, func(h kgo.RecordHeader) bool { return h.Key == "seek" })
						})
					}
				}
				if rs, of := s.verify(t, untold, true, stateless); of["resolved"] != Broken {
					t.Errorf("stateless %t: a partition lacks the seek: %s", stateless, shown(t, rs))
				}
			}
		})
	}
}

// loseNewest removes the newest event of the topic, which came once.
func loseNewest(v *victim) bool {
	var newest *kgo.Record
	for _, rs := range v.data.records {
		for _, r := range rs {
			if header(r, "scan") == "" && r.Key != nil && (newest == nil || r.Timestamp.After(newest.Timestamp)) {
				newest = r
			}
		}
	}
	rs := v.data.records[newest.Partition]
	i := slices.Index(rs, newest)
	v.data.records[newest.Partition] = slices.Delete(rs, i, i+1)
	return true
}

func addPartitions(t *testing.T, w *world) {
	if _, err := kadm.NewClient(w.cl).CreatePartitions(t.Context(), 2, written); err != nil {
		t.Fatal(err)
	}
}

// beginScan asks for a scan, and stops the bridge in the middle of it.
func beginScan(t *testing.T, w *world) {
	c := loaded(t)
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		t.Fatal(err)
	}
	ask := offsets.Request{ID: offsets.ScanID(time.Now()), Time: time.Now(), Sweep: true}
	if err := offsets.Ask(t.Context(), w.cl, "blobfeed.offsets", ask); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	pages := 0
	w.store.Size = func(int) int { return 8 }
	w.store.Before = func(ctx context.Context, op string, _ inventory.Query) error {
		if pages++; op == "list" && pages > 6 {
			cancel()
		}
		return ctx.Err()
	}
	log, shown := progress.New(c, io.Discard)
	o.Log, o.Observer = log, bridge.Observers{shown}
	o.Feed.AccountURL, o.Feed.Inventory, o.Pace.ScanRequests, o.Pace.ScanRound = "https://a/", w.store, 1, time.Second
	if err := bridge.New(o).Run(ctx, ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
	s, err := brokers(o.Kafka.Client).state(t.Context(), "blobfeed.offsets")
	if err != nil || !s.Frontier.Scan.Active() {
		t.Fatalf("no scan is under way: %v, %+v", err, s.Frontier.Scan)
	}
}
