package judge

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/internal/plain"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// In every form, the table of the topic is the account after a scan and changes, and a record that is missing is found.
func TestCensusForms(t *testing.T) {
	for i, settings := range []string{
		"", "ENVELOPE=bare", "ENVELOPE=row DELETES=tombstone KEY_FORMAT=string RESOLVED_TO=topic OPTIONS=none",
		"ENVELOPE=key_only DELETES=both KEY_FORMAT=json_object", "FORMAT=avro ENVELOPE=enriched",
		"FORMAT=avro ENVELOPE=bare HEADERS=none", "TOPIC={container}", "COLUMNS=!etag,!blob_type DELETES=empty",
		"COLUMNS=content_length MAPS=json",
		"DELIVERY=at_least_once", "PREFIXES=photos/,logs/new", "CONTAINERS=logs BLOB_TYPES=BlockBlob",
	} {
		if testing.Short() && i%6 > 0 {
			continue
		}
		t.Run(settings, func(t *testing.T) {
			w := newWorld(t, settings)
			w.change()
			w.publish(t)
			deliver(t)
			if rs, text := w.verify(t, nil, nil); Verdict(rs) != nil || strings.Contains(text, "note") {
				t.Fatalf("%v: %s", Verdict(rs), text)
			}
			c := copyAll(t, w.cl)
			lost := lose(c)
			rs, text := w.verify(t, c, nil)
			var broken *BrokenError
			if !errors.As(Verdict(rs), &broken) || !strings.HasPrefix(broken.Checks[0], "account") ||
				!strings.Contains(text, "the topic has no blob, the account a blob of ") {
				t.Errorf("without %q: %v: %s", lost, Verdict(rs), text)
			}
		})
	}
}

// What the feed explains, or changes meanwhile, is no difference; everything else is one, with the key and both sides.
func TestCensusDifferences(t *testing.T) {
	for name, c := range map[string]struct {
		happens func(t *testing.T, w *world, c *copied)
		says    string
		broken  bool
	}{
		"nothing": {func(*testing.T, *world, *copied) {}, "holds        account    ", false},
		"an event is not delivered": {func(t *testing.T, w *world, _ *copied) {
			w.Put("photos", blobNamed(3))
			w.Delete("photos", blobNamed(6).Name)
			w.publish(t)
		}, "note: not judged: 2 keys with events in the feed that are not delivered yet", false},
		"a write is not in the feed": {func(_ *testing.T, w *world, _ *copied) { w.Put("photos", blobNamed(3)) },
			"note: not judged: 1 key that changed during the comparison", false},
		"a deletion during the listing": {func(_ *testing.T, w *world, _ *copied) {
			w.Put("photos", inventory.Blob{Name: "zzz"})
			w.store.Before = func(_ context.Context, op string, q inventory.Query) error {
				if op == "list" && q.Prefix == "zzz" { // when it is looked at again
					w.Delete("photos", "zzz")
				}
				return nil
			}
		}, "holds        account    ", false},
		"a write that the feed lost": {func(_ *testing.T, w *world, _ *copied) {
			w.Put("photos", blobNamed(3))
			w.now = w.now.Add(time.Minute)
		}, `key ["photos/dir/003 ü%20.bin"]: the topic has a blob of 1,000 bytes with etag 0x`, true},
		"a deletion that the feed lost": {func(_ *testing.T, w *world,
			_ *copied) {
			w.Delete("photos", blobNamed(63).Name)
		},
			`key ["photos/dir/063 ü%20.bin"]: the topic has a blob of 63 bytes with etag 0x`, true},
		"a lost deletion of a name that begins another": {func(_ *testing.T, w *world,
			_ *copied) {
			w.Delete("$web", "log")
		},
			`key ["$web/log"]: the topic has a blob of 1 byte`, true},
		"an event of the open segment is lost": {func(t *testing.T, w *world, c *copied) {
			w.Put("photos", inventory.Blob{Name: "last"})
			if _, err := w.Publish(t.Context(), w.feed, nil, nil); err != nil {
				t.Fatal(err)
			}
			w.now = w.now.Add(time.Minute)
			deliver(t)
			*c = *copyAll(t, w.cl)
			for p, rs := range c.topics[written].records {
				if n := len(rs); strings.Contains(string(rs[n-1].Key), "last") {
					c.topics[written].records[p] = rs[:n-1]
					return
				}
			}
			t.Fatal("it is not delivered")
		}, `key ["photos/last"]: the topic has no blob`, true},
		"a filter that came later": {func(t *testing.T, w *world, _ *copied) {
			t.Setenv("BRIDGE_PREFIXES", "photos/")
			w.Put("logs", inventory.Blob{Name: blobNamed(61).Name, Length: 3})
			w.now = w.now.Add(time.Minute)
		}, "holds        account    ", false},
		"a container is gone": {func(_ *testing.T, w *world, _ *copied) { w.Drop("$web") },
			`key ["$web/log"]: the topic has a blob of 1 byte with etag 0x`, true},
		"an append": {func(_ *testing.T, w *world, _ *copied) {
			w.Put("$web", inventory.Blob{Name: "log", BlobType: "AppendBlob", Length: 99})
			w.now = w.now.Add(time.Minute)
		}, "holds        account    ", false},
		"a deletion is not in the topic": {func(t *testing.T, _ *world, c *copied) {
			for p, rs := range c.topics[written].records {
				for i := len(rs) - 1; i >= 0; i-- {
					if strings.HasSuffix(header(rs[i], "ce_type"), "Deleted") {
						c.topics[written].records[p] = append(rs[:i:i], rs[i+1:]...)
						return
					}
				}
			}
			t.Fatal("there is none")
		}, "bytes with etag 0x", true},
		"a row differs": {func(_ *testing.T, w *world, c *copied) {
			for _, rs := range c.topics[written].records {
				for i, r := range rs {
					if strings.Contains(string(r.Key), blobNamed(62).Name) { // which did not change
						rs[i] = changed(r, func(r *kgo.Record) {
							r.Value = []byte(`{"after": {"etag": "other", "path": "x"}}`)
						})
					}
				}
			}
		}, "a blob of 0 bytes with etag other, the account a blob of 62 bytes", true},
	} {
		for _, keys := range []int{censusLimits.keys, 16} {
			t.Run(fmt.Sprintf("%s, %d keys at a time", name, keys), func(t *testing.T) {
				w := newWorld(t, "")
				w.change()
				w.publish(t)
				deliver(t)
				copied := copyAll(t, w.cl)
				c.happens(t, w, copied)
				rs, text := w.verify(t, copied, func(v *verification) { v.limits.keys = keys })
				if broken := Verdict(rs) != nil; broken != c.broken || !strings.Contains(text, c.says) {
					t.Errorf("%v, want %q: %s", Verdict(rs), c.says, text)
				}
			})
		}
	}
}

// While it waits, the feed gets an event, and the bridge delivers it.
func TestCensusWaits(t *testing.T) {
	for name, change := range map[string]func(w *world){
		"a deletion": func(w *world) { w.Delete("photos", blobNamed(3).Name) },
		"a write":    func(w *world) { w.Put("photos", inventory.Blob{Name: blobNamed(6).Name, Length: 77}) },
	} {
		t.Run(name, func(t *testing.T) { // one key, so that it is looked up by one goroutine
			w := newWorld(t, "")
			change(w)
			w.now = w.now.Add(time.Minute)
			looks := 0
			w.store.Before = func(_ context.Context, op string, q inventory.Query) error {
				if op == "list" && q.Prefix != "" {
					if looks++; looks == 2 {
						w.publish(t)
						deliver(t)
					}
				}
				return nil
			}
			rs, text := w.verify(t, nil, func(v *verification) {
				v.Wait, v.limits.poll = 5*time.Second, time.Millisecond
			})
			if Verdict(rs) != nil || looks < 3 || strings.Contains(text, "note") {
				t.Errorf("%d looks, %v: %s", looks, Verdict(rs), text)
			}
		})
	}
}

// A pass keeps no more keys than it may, and those of its own part.
func TestCensusParts(t *testing.T) {
	w := newWorld(t, "")
	v := bySettings(t, "")
	v.ReadAccount, v.Feed.Inventory, v.cluster, v.limits.keys = true, w.store, copyAll(t, w.cl), 16
	var err error
	if v.state, err = v.readState(t.Context()); err != nil {
		t.Fatal(err)
	}
	judged, err := v.openJudged(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	c, err := v.newCensus(judged)
	if err != nil {
		t.Fatal(err)
	}
	all := 0
	for c.parts = 1; c.part < c.parts; c.part++ {
		c.rows = map[uint64]uint64{}
		if err := c.read(t.Context(), judged[0]); err != nil {
			t.Fatal(err)
		}
		if all += len(c.rows); c.part == 0 && len(c.rows) > 16 {
			t.Errorf("%d keys", len(c.rows))
		}
		for h := range c.rows {
			if h%c.parts != c.part {
				t.Fatalf("a key of part %d in part %d", h%c.parts, c.part)
			}
		}
	}
	if all != 120 || c.parts < 4 { // the hashes differ from run to run
		t.Errorf("%d keys in %d parts", all, c.parts)
	}
}

// Keys beyond the memory for those that differ are counted, and the comparison is not passed.
func TestCensusOverflow(t *testing.T) {
	w := newWorld(t, "")
	w.Drop("photos")
	rs, text := w.verify(t, nil, func(v *verification) { v.limits.differences = 3 })
	if Verdict(rs) == nil || rs[0].Problem == "" || !strings.Contains(text, "etag 0x") {
		t.Errorf("%q: %s", rs[0].Problem, text)
	}
}

// A topic that does not exist is reported, with the number of its blobs.
func TestCensusWithoutTopic(t *testing.T) {
	w := newWorld(t, "TOPIC={container}")
	w.Create("more")
	for i := range 5 {
		w.Put("more", blobNamed(i))
	}
	w.now = w.now.Add(time.Minute)
	rs, text := w.verify(t, nil, nil)
	if Verdict(rs) == nil || !strings.Contains(text, "the account has 5 blobs for this topic") {
		t.Errorf("%v: %s", Verdict(rs), text)
	}
}

// Topics that can't be the table of an account are rejected, with the setting that is in the way.
func TestCensusUnusable(t *testing.T) {
	for settings, want := range map[string]string{
		"EVENTS=all": "BRIDGE_EVENTS=all", "EVENT_TYPES=BlobCreated": "filters of event types",
		"ENVELOPE=key_only": "a deletion looks like a row",
	} {
		t.Run(settings, func(t *testing.T) {
			w := newWorld(t, settings)
			v := bySettings(t, "")
			v.ReadFeed, v.ReadAccount, v.Feed.Inventory = false, true, w.store
			var unusable *plain.SettingsError
			if _, err := v.run(t.Context()); !errors.As(err, &unusable) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", settings, err)
			}
		})
	}
	for want, change := range map[string]func(v *verification, c *copied){
		"names a directory":     func(v *verification, _ *copied) { v.Feed.Inventory = nil },
		"has stored anything":   func(_ *verification, c *copied) { c.states = nil },
		"retention has deleted": func(_ *verification, c *copied) { c.topics[written].from[1] = 3 },
		"began at 1.0000000000 without a scan": func(_ *verification, c *copied) {
			c.states[stateTopic].Frontier.Start = "1.0000000000"
		},
		"began at a segment behind 20": func(_ *verification, c *copied) { // by a seek before the first start
			f := c.states[stateTopic].Frontier
			f.Epoch, f.Scan, f.Completed = 1, nil, source.SegmentAt(time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC))
			f.Since = source.Before(f.Completed)
		},
		"is not complete": func(_ *verification,
			c *copied) {
			c.states[stateTopic].Frontier.Scan.Done = false
		},
		"does not name its account": func(v *verification, _ *copied) { v.Topics.Shared = true; v.Account = "simaccount" },
	} {
		t.Run(want, func(t *testing.T) {
			w := newWorld(t, "")
			v, c := bySettings(t, ""), copyAll(t, w.cl)
			v.ReadFeed, v.ReadAccount, v.Feed.Inventory, v.cluster = false, true, w.store, c
			change(v, c)
			var unusable *plain.SettingsError
			if _, err := v.run(t.Context()); !errors.As(err, &unusable) || !strings.Contains(err.Error(), want) {
				t.Errorf("%s: %v", want, err)
			}
		})
	}
}

const stateTopic = "blobfeed.offsets"

// A service that returns the same empty page again and again ends the comparison with an error.
func TestCensusOfAStuckListing(t *testing.T) {
	c := &census{v: &verification{Options: Options{Options: bridge.Options{Feed: bridge.Feed{Inventory: &stuckStore{}}}}}}
	if _, err := c.blobOf(t.Context(), "c/b"); err == nil || !strings.Contains(err.Error(), "is the same one") {
		t.Error(err)
	}
	c.v.Feed.Inventory = &stuckStore{turns: true}
	if _, err := c.blobOf(t.Context(), "c/b"); err == nil || !strings.Contains(err.Error(), "1000 empty pages") {
		t.Error(err)
	}
}

type stuckStore struct {
	inventory.Store
	asked int
	turns bool // between two markers
}

func (s *stuckStore) List(context.Context, inventory.Query) (*inventory.Page, error) {
	if s.asked++; s.asked > 2*maxLookPages {
		return nil, errors.New("too many requests")
	}
	if s.turns {
		return &inventory.Page{Marker: fmt.Sprint(s.asked % 2)}, nil
	}
	return &inventory.Page{Marker: "m"}, nil
}
