package judge

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/partitioner"
	"blobfeed/source/inventory"
)

// grow adds partitions, and delivers changes on both sides of the marker from which they are used.
func (w *world) grow(t *testing.T) {
	t.Helper()
	w.change()
	w.publish(t)
	deliver(t)
	if _, err := kadm.NewClient(w.cl).CreatePartitions(t.Context(), 2, written); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.Put("photos", inventory.Blob{Name: "counts"})
		w.publish(t)
		deliver(t)
	}
	for i := range 20 {
		w.Put("photos", inventory.Blob{Name: blobNamed(3 * i).Name, Length: 2000})
		w.Delete("logs", blobNamed(3*i+1).Name)
		w.Delete("$web", blobNamed(3*i+2).Name)
	}
	w.publish(t)
	deliver(t)
}

// After partitions were added, stale records stay in the former partitions of keys. The table is the account
// nevertheless, by the highest updated, and what is wrong with it is found.
func TestCensusOfGrownTopic(t *testing.T) {
	for _, settings := range []string{"", "FORMAT=avro ENVELOPE=bare HEADERS=none", "DELETES=both",
		"ENVELOPE=key_only DELETES=tombstone"} {
		t.Run(settings, func(t *testing.T) {
			w := newWorld(t, settings)
			w.grow(t)
			for _, keys := range []int{censusLimits.keys, 16} {
				rs, text := w.verify(t, nil, func(v *verification) { v.limits.keys = keys })
				if Verdict(rs) != nil || !strings.Contains(text, "keys with an older blob in a former partition") {
					t.Errorf("%d keys at a time: %v: %s", keys, Verdict(rs), text)
				}
			}
			w.Put("photos", inventory.Blob{Name: "lost"}) // the feed does not get that event
			w.Delete("photos", blobNamed(0).Name)
			w.now = w.now.Add(1)
			rs, text := w.verify(t, nil, nil)
			if Verdict(rs) == nil || !strings.Contains(text, "photos/dir/000") {
				t.Errorf("after a lost deletion: %v: %s", Verdict(rs), text)
			}
		})
	}
}

// Partitions that are added behind an initial scan are used from the first marker on. So all partitions have the same
// markers, and only the keys of the rows say that there were fewer.
func TestGrownBehindInitialScan(t *testing.T) {
	w := newWorld(t, "")
	if _, err := kadm.NewClient(w.cl).CreatePartitions(t.Context(), 2, written); err != nil {
		t.Fatal(err)
	}
	if rs, text := w.verify(t, nil, nil); !strings.Contains(text, "2 partitions not in use yet") {
		t.Errorf("before the marker: %v: %s", Verdict(rs), text)
	}
	w.change()
	for range 3 {
		w.Put("photos", inventory.Blob{Name: "counts"})
		w.publish(t)
		deliver(t)
	}
	rs, text := w.verify(t, nil, nil)
	if Verdict(rs) != nil || !strings.Contains(text, " for 3 partitions, and 5 behind the marker ") {
		t.Errorf("%v: %s", Verdict(rs), text)
	}
}

// What is wrong with a topic that got partitions is found, with the state of the bridge and without it.
func TestGrownTopicIsJudged(t *testing.T) {
	w := newWorld(t, "")
	w.grow(t)
	base := copyAll(t, w.cl)
	isMarker := func(r *kgo.Record) bool { return r.Key == nil }
	for name, c := range map[string]struct {
		put   func(*tape) bool
		found string
	}{
		"nothing": {func(*tape) bool { return true }, ""},
		"a key behind the marker is in its former partition": {func(x *tape) bool {
			for p := int32(3); p < 5; p++ {
				for i, r := range x.records[p] {
					if q := partitioner.Murmur2(r.Key, 3); r.Key != nil {
						x.records[p] = slices.Delete(x.records[p], i, i+1)
						x.add(changed(r, func(r *kgo.Record) { r.Partition = q }))
						return true
					}
				}
			}
			return false
		}, "partition"},
		"a key before the marker is in an added partition": {func(x *tape) bool {
			for p := range int32(3) {
				for i, r := range x.records[p] {
					if q := partitioner.Murmur2(r.Key, 5); r.Key != nil && q > 2 {
						x.records[p] = slices.Delete(x.records[p], i, i+1)
						x.records[q] = slices.Insert(x.records[q], 0,
							changed(r, func(r *kgo.Record) { r.Partition, r.Offset = q, 0 }))
						return true
					}
				}
			}
			return false
		}, "partition"},
		"an added partition lacks its last marker": {func(x *tape) bool {
			for i, r := range slices.Backward(x.records[4]) {
				if isMarker(r) {
					x.records[4] = slices.Delete(x.records[4], i, i+1)
					return true
				}
			}
			return false
		}, "resolved"},
		"an added partition lacks its first marker": {func(x *tape) bool {
			i := slices.IndexFunc(x.records[4], isMarker)
			x.records[4] = slices.Delete(x.records[4], i, i+1)
			return i == 0
		}, "partition"}, // a key shows that it was used before its new first marker
		"an added partition has no marker": {func(x *tape) bool {
			x.records[4] = slices.DeleteFunc(x.records[4], isMarker)
			return true
		}, "resolved"},
	} {
		for _, stateless := range []bool{false, true} {
			cut := base.clone()
			if !c.put(cut.topics[written]) {
				t.Fatalf("%s: there is no place for it", name)
			}
			if stateless {
				cut.states = nil
			}
			v := bySettings(t, written)
			v.ReadFeed, v.cluster = false, cut
			rs, err := v.run(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			of := map[string]string{}
			for _, k := range rs[0].Checks {
				of[k.Name] = k.Status
			}
			if broken := slices.Contains(slices.Collect(maps.Values(of)), Broken); broken != (c.found != "") ||
				c.found != "" && of[c.found] != Broken {
				t.Errorf("%s, stateless %t: want %q: %s", name, stateless, c.found, shown(t, rs))
			}
		}
	}
}

// A round of --follow ends at a marker. Partitions that are used behind a later one only are none of its business, also
// if they have that one already.
func TestFollowBesideGrowth(t *testing.T) {
	for _, settings := range []string{"", "RESOLVED_TO=topic"} {
		w := newWorld(t, settings)
		for range 3 {
			w.Put("photos", inventory.Blob{Name: "counts"})
			w.publish(t)
		}
		deliver(t)
		before := copyAll(t, w.cl)
		if _, err := kadm.NewClient(w.cl).CreatePartitions(t.Context(), 2, written); err != nil {
			t.Fatal(err)
		}
		for range 3 {
			w.Put("photos", inventory.Blob{Name: "counts"})
			w.publish(t)
			deliver(t)
		}
		cl, err := kgo.NewClient(w.cl.Opts()...) // the other one remembers the topics as they were
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		after := copyAll(t, cl)
		after.states = before.states
		v := bySettings(t, "")
		v.cluster, v.since = after, &since{}
		rs, err := v.run(t.Context())
		if err != nil || Verdict(rs) != nil {
			t.Errorf("%q: %v, %v: %s", settings, err, Verdict(rs), shown(t, rs))
		}
	}
}
