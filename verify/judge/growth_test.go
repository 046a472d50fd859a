package judge

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/partitioner"
	"blobfeed/source/inventory"
	"blobfeed/verify"
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

// A key may have live records in its partition of today and in a former one, and the record with the highest updated
// counts: here deletions that no blob has. If another one did, no difference would be left, since that is the blob.
func TestDeletionInAGrownTopic(t *testing.T) {
	w := newWorld(t, "")
	w.grow(t)
	base := copyAll(t, w.cl)
	x := base.topics[written]
	var deletion *kgo.Record // of behind the growth
	for _, rs := range x.records {
		for _, r := range rs {
			if strings.HasSuffix(header(r, "ce_type"), "Deleted") &&
				(deletion == nil || r.Timestamp.After(deletion.Timestamp)) {
				deletion = r
			}
		}
	}
	var keys []string
	for p := range int32(3) {
		for _, r := range x.records[p] {
			number, photo := strings.CutPrefix(string(r.Key), `["photos/dir/`)
			q := partitioner.Murmur2(r.Key, 5)
			if photo && number >= "060" && p != q { // it did not change, and would now be in another partition
				keys = append(keys, string(r.Key))
				x.add(changed(deletion, func(d *kgo.Record) { d.Key, d.Partition = r.Key, q }))
			}
		}
	}
	_, text := w.verify(t, base, nil)
	for _, key := range keys {
		if !strings.Contains(text, "key "+key+": the topic has no blob, the account a blob of ") {
			t.Errorf("%s has a deletion behind its row: %s", key, text)
		}
	}
	if len(keys) < 5 {
		t.Errorf("%d keys", len(keys))
	}
}

// A partition that had no key before the first marker begins with that marker, as one that was added behind it. The
// first keys of the others say that it was there.
func TestPartitionWithoutFirstKeysIsNotAdded(t *testing.T) {
	w := newWorld(t, "")
	w.change()
	w.publish(t)
	deliver(t)
	c := copyAll(t, w.cl)
	x := c.topics[written]
	x.records[2] = x.records[2][slices.IndexFunc(x.records[2], func(r *kgo.Record) bool { return r.Key == nil }):]
	v := bySettings(t, written)
	v.ReadFeed, v.cluster = false, c
	rs, err := v.run(t.Context())
	if text := shown(t, rs); err != nil || Verdict(rs) != nil || !strings.Contains(text, " gives for 3 partitions (") {
		t.Errorf("%v, %v: %s", err, Verdict(rs), text)
	}
}

// What is wrong with a topic that got partitions is found, with the state of the bridge and without it.
func TestGrownTopicIsJudged(t *testing.T) {
	w := newWorld(t, "")
	w.grow(t)
	for i := range 10 { // the feed has lost that, and a sweep deletes it in both partitions
		w.Delete("photos", blobNamed(3*i).Name)
	}
	rescan(t, w.Account)
	base := copyAll(t, w.cl)
	isMarker := func(r *kgo.Record) bool { return r.Key == nil }
	const lostPartition = "an added partition is empty"
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
		"retention has deleted the begin of a former partition": {func(x *tape) bool {
			x.records[1] = x.records[1][slices.IndexFunc(x.records[1], isMarker):]
			x.from[1] = x.records[1][0].Offset
			return true
		}, ""},
		"retention has deleted the begins of all, the added ones most": {func(x *tape) bool {
			growth := x.records[4][0]
			for p, rs := range x.records {
				at := slices.IndexFunc(rs, func(r *kgo.Record) bool { return string(r.Value) == string(growth.Value) })
				if p < 3 {
					at -= 2 * doubt // keys that say how many partitions there were
				} else {
					at++
				}
				x.records[p], x.from[p] = rs[at:], rs[at].Offset
			}
			return true
		}, ""},
		lostPartition: {func(x *tape) bool {
			x.records[4] = nil
			return true
		}, "resolved"}, // by the state: it says that the partition is in use
	} {
		for _, stateless := range []bool{false, true} {
			if stateless && name == lostPartition {
				continue
			}
			cut := base.clone()
			if !c.put(cut.topics[written]) {
				t.Fatalf("%s: there is no place for it", name)
			}
			if stateless {
				cut.states = nil
			}
			v := bySettings(t, written)
			v.ReadFeed, v.cluster = c.found == "", cut
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

// A partition that begins with a key has no marker to name.
func TestGrowthWithoutMarker(t *testing.T) {
	at := envelope.Timestamp{Wall: 1}.String()
	g := growth{first: 2, steps: []verify.Growth{
		{Partitions: 3, Resolved: at}, {Partitions: 4, Resolved: envelope.Timestamp{}.String()},
	}}
	if got, want := g.String(), "2 partitions, and 3 behind the marker "+at+", and 4 without a marker"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
