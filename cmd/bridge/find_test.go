package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/find"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// found returns what find says, as JSON. It fails if an event is missing.
func found(t *testing.T, args ...string) (all []find.Found) {
	t.Helper()
	code, stdout, stderr := call(t, append([]string{"find", "--output", "json"}, args...)...)
	want := exitOK
	for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
		var f find.Found
		if err := d.Decode(&f); err != nil {
			t.Fatal(err)
		}
		all = append(all, f)
		if f.Fate == find.Missing {
			want = exitFailed
		}
	}
	if code != want || len(all) == 0 {
		t.Fatalf("find %s: exit code %d, want %d: %s", args, code, want, stderr)
	}
	return all
}

// find names the record of every event, and the marker behind it, as a consumer of the topic sees them.
func TestFind(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	rs := func() map[string]*kgo.Record {
		of := map[string]*kgo.Record{}
		for _, r := range read(t, c, changes) {
			if r.Key != nil {
				of[header(r, "position")] = r
			}
		}
		return of
	}
	const path = "container0/blob0"
	for _, f := range found(t, path) {
		if f.Fate != find.Waiting || !strings.Contains(f.Why, "no bridge of this name has run") {
			t.Errorf("before the first start: %+v", f)
		}
	}
	runToEnd(t)
	records, n := rs(), 0
	for _, f := range found(t, path) {
		r := records[f.Position]
		if r == nil || f.Fate != find.Delivered || f.Record.Partition != r.Partition || f.Record.Offset != r.Offset ||
			f.Path != path || f.ID != header(r, "ce_id") {
			t.Errorf("%+v, want %v", f, r)
		}
		if m := f.CoveredBy; m == nil || m.Partition != r.Partition || m.Offset <= r.Offset {
			t.Errorf("the marker behind %s: %+v", f.Position, m)
		}
		n++
	}
	want := 0
	for _, r := range records {
		if header(r, "ce_subject") == "/blobServices/default/containers/container0/blobs/blob0" ||
			strings.HasSuffix(header(r, "ce_subject"), "container0/blobs/blob0") {
			want++
		}
	}
	for _, name := range []string{"https://seanchangefeed.blob.core.windows.net/" + path, `["` + path + `"]`} {
		if by := found(t, name); len(by) != n {
			t.Errorf("by %s, %d events are found, want %d", name, len(by), n)
		}
	}
	if n == 0 || n != want {
		t.Errorf("%d events are found, want %d", n, want)
	}
	first := found(t, path)[0]
	if by := found(t, "--id", first.ID); len(by) != 1 || by[0].Position != first.Position {
		t.Errorf("by its id: %+v", by)
	}
	if code, _, stderr := call(t, "find", "container0/none"); code != exitFailed ||
		!strings.Contains(stderr, "the feed has no event of container0/none") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	// A seek repeats events: each record is named.
	if code, _, stderr := call(t, "seek", "--to", "earliest", "--yes"); code != exitOK {
		t.Fatal(stderr)
	}
	runToEnd(t)
	again := rs()[first.Position] // the last one
	if f := found(t, path)[0]; len(f.Again) != 1 || *f.Record != *first.Record || *f.CoveredBy != *first.CoveredBy ||
		*f.Again[0] != (find.Place{Topic: changes, Partition: again.Partition, Offset: again.Offset}) {
		t.Errorf("after a seek: %+v, want also offset %d", f, again.Offset)
	}
	if _, stdout, _ := call(t, "find", "--id", first.ID); !strings.Contains(stdout,
		fmt.Sprintf("\n  again     partition %d, offset %d\n", again.Partition, again.Offset)) {
		t.Errorf("after a seek:\n%s", stdout)
	}
	// The setting that leaves an event out is named, and a record that is gone is missing.
	setenv(t, "BRIDGE_CONTAINERS", "others")
	if f := found(t, path)[0]; f.Fate != find.LeftOut || !strings.Contains(f.Why, "BRIDGE_CONTAINERS") {
		t.Errorf("%+v", f)
	}
	setenv(t, "BRIDGE_CONTAINERS", "")
	// With what is not the bridge's, each record would be missing.
	for name, value := range map[string]string{"TOPIC": "other", "SOURCE_URL": "file://" + t.TempDir()} {
		t.Run(name, func(t *testing.T) {
			setenv(t, "BRIDGE_"+name, value)
			if code, _, stderr := call(t, "find", path); code != exitSettings || !strings.Contains(stderr, "BRIDGE_"+name) {
				t.Errorf("exit code %d: %s", code, stderr)
			}
		})
	}
	if code, _, stderr := call(t, "find", path, "--from", "2020-05-01", "--to", "2020-01-01"); code != exitUsage ||
		!strings.Contains(stderr, "is later than --to") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	adm, err := kadm.NewOptClient(kgo.SeedBrokers(c.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer adm.Close()
	deleteTopic(t, adm)
	if f := found(t, path)[0]; f.Fate != find.Missing || !strings.Contains(f.Why, "topic "+changes+" does not exist") {
		t.Errorf("%+v", f)
	}
	if _, err := adm.CreateTopic(t.Context(), 4, 1, nil, changes); err != nil {
		t.Fatal(err)
	}
	if f := found(t, path)[0]; f.Fate != find.Missing {
		t.Errorf("%+v", f)
	}
	// Compaction removes records while all is well.
	compact := []kadm.AlterConfig{{Name: "cleanup.policy", Value: new("compact")}}
	if _, err := adm.AlterTopicConfigs(t.Context(), compact, changes); err != nil {
		t.Fatal(err)
	}
	if f := found(t, path)[0]; f.Fate != find.Unknown || !strings.Contains(f.Why, "is compacted") {
		t.Errorf("%+v", f)
	}
}

// Events of a path share a read of their topic, and one of the dead letters.
func TestFindReadsATopicOnce(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	dir, path := t.TempDir(), "c/dir000/file-000000.bin"
	spec := feedsim.Spec{Segments: 2, EventsPerSegment: 30, Blobs: 1, Containers: []string{"c"}}
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), spec, nil); err != nil {
		t.Fatal(err)
	}
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+dir)
	runToEnd(t)
	var listings atomic.Int32 // two for each read
	c.ControlKey(int16(kmsg.ListOffsets), func(kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		listings.Add(1)
		return nil, nil, false
	})
	cost := func(fate string, args ...string) (of string, n int32) {
		t.Helper()
		before := listings.Load()
		all := found(t, args...)
		for _, f := range all {
			if f.Fate != fate {
				t.Fatalf("%s, want %s: %+v", f.Fate, fate, f)
			}
		}
		if args[0] == path && len(all) != 60 {
			t.Fatalf("%d events are found, want 60", len(all))
		}
		return all[0].ID, listings.Load() - before
	}
	same := func(fate string) {
		t.Helper()
		id, all := cost(fate, path)
		if _, one := cost(fate, "--id", id); all != one || one == 0 {
			t.Errorf("%s: %d listings of offsets for all events, %d for one", fate, all, one)
		}
	}
	same(find.Delivered)
	if code, _, stderr := call(t, "seek", "--to", "earliest", "--yes"); code != exitOK {
		t.Fatal(stderr)
	}
	runToEnd(t)
	same(find.Delivered)
	value := map[string]string{}
	for _, r := range read(t, c, changes) {
		value[header(r, "position")] = string(r.Value)
	}
	_, stdout, _ := call(t, "find", path, "--value", "--output", "json")
	for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
		var f struct{ Position, Value string }
		if err := d.Decode(&f); err != nil || f.Value == "" || f.Value != value[f.Position] {
			t.Fatalf("%v: %+v, want %s", err, f, value[f.Position])
		}
	}
	adm := fakebroker.Admin(t, c)
	deleteTopic(t, adm)
	if _, err := adm.CreateTopics(t.Context(), 4, 1, nil, changes, "b.dlq"); err != nil {
		t.Fatal(err)
	}
	same(find.Missing)
}

// A transaction that is open hides what others have committed behind it. That is not missing.
func TestFindBehindAnOpenTransaction(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	if _, err := fakebroker.Admin(t, c).CreateTopic(t.Context(), 4, 1, nil, changes); err != nil {
		t.Fatal(err)
	}
	open := fakebroker.Client(t, c, kgo.TransactionalID("slow"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	err := open.BeginTransaction()
	for p := range int32(4) {
		if err == nil {
			err = open.ProduceSync(t.Context(), &kgo.Record{Topic: changes, Partition: p, Key: []byte("slow")}).FirstErr()
		}
	}
	if err != nil {
		t.Fatal(err)
	}
	runToEnd(t)
	ended := make(chan error, 1)
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if req.(*kmsg.ListOffsetsRequest).Topics[0].Topic == changes { // its end is known
			c.DropControl()
			go func() { ended <- open.EndTransaction(t.Context(), kgo.TryAbort) }()
		}
		return nil, nil, false
	})
	for _, f := range found(t, "container0/blob0") {
		if f.Fate != find.Delivered {
			t.Errorf("%+v", f)
		}
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What a seek has skipped is not missing, and what was delivered before a seek back is delivered.
func TestFindOfSkippedEvents(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	dir := t.TempDir()
	spec := feedsim.Spec{Segments: 6, EventsPerSegment: 30, Blobs: 1, Containers: []string{"c"}}
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), spec, nil); err != nil {
		t.Fatal(err)
	}
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+dir)
	published := filepath.Join(dir, "meta/segments.json")
	all, err := os.ReadFile(published)
	if err != nil {
		t.Fatal(err)
	}
	some := []byte(`{"lastConsumable": "2026-01-01T02:00:00Z"}`)
	if err := os.WriteFile(published, some, 0o600); err != nil {
		t.Fatal(err)
	}
	seek := func(to string) {
		t.Helper()
		if code, _, stderr := call(t, "seek", "--to", to, "--yes", "--force"); code != exitOK {
			t.Fatal(stderr)
		}
	}
	seek("2026/01/01/0100")
	runToEnd(t)
	if err := os.WriteFile(published, all, 0o600); err != nil {
		t.Fatal(err)
	}
	// fates has a line where the fate changes: the hour of the event, and what became of it.
	fates := func() (all string) {
		was := ""
		for _, f := range found(t, "c/dir000/file-000000.bin") {
			if now := f.Fate + ": " + f.Why; now != was {
				all += f.Time.Format("\n15h ") + now
				was = now
			}
		}
		return all
	}
	is := func(when string, want ...string) {
		t.Helper()
		if got := fates(); got != "\n"+strings.Join(want, "\n") {
			t.Errorf("%s:%s\nwant\n%s", when, got, strings.Join(want, "\n"))
		}
	}
	const early = "00h skipped: no segment before 2026/01/01/0100 is delivered (BRIDGE_START, BRIDGE_INITIAL_SCAN or " +
		"bridge seek)"
	const hole = "03h skipped: bridge seek has skipped the segments after 2026/01/01/0200 and before 2026/01/01/0400"
	waits := func(hour string) string {
		return hour + "h not_delivered: the bridge has not committed this part of segment 2026/01/01/" + hour + "00 yet"
	}
	is("at the end of the first part", early, "01h delivered: ", waits("03"), waits("04"), waits("05"))
	seek("2026/01/01/0400")
	is("moved forward", early, "01h delivered: ", hole, waits("04"), waits("05"))
	runToEnd(t)
	is("at the end", early, "01h delivered: ", hole, "04h delivered: ")
	if _, stdout, _ := call(t, "find", "c/dir000/file-000000.bin"); !strings.Contains(stdout, "\n  "+hole[4:]+"\n") {
		t.Errorf("%s", stdout)
	}
	seek("2026/01/01/0200")
	is("moved back", early, "01h delivered: ", waits("03"), "04h delivered: ")
	seek("2026-01-01T03:30:00Z")
	runToEnd(t)
	const timed = "03h skipped: delivery began at 2026-01-01T03:30:00Z there (bridge seek or BRIDGE_START)"
	is("moved to a time", early, "01h delivered: ", timed, "03h delivered: ")
	seek("2026/01/01/0500")
	is("moved from there", early, "01h delivered: ", timed, "03h delivered: ")
	// Nothing is skipped that was delivered before a seek.
	adm := fakebroker.Admin(t, c)
	deleteTopic(t, adm)
	if _, err := adm.CreateTopic(t.Context(), 4, 1, nil, changes); err != nil {
		t.Fatal(err)
	}
	for _, f := range found(t, "c/dir000/file-000000.bin", "--from", "2026/01/01/0100", "--to", "2026-01-01T02:59:59Z") {
		if f.Fate != find.Missing {
			t.Errorf("without its record: %+v", f)
		}
	}
}

// Events behind damage are found, too, and the damage is reported: the event may be in it.
func TestFindBehindDamage(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	copied(t, damage)
	setenv(t, "BRIDGE_ON_ERROR", "dead_letter")
	runToEnd(t)
	var last *kgo.Record
	for _, r := range read(t, c, changes) {
		if strings.HasPrefix(header(r, "position"), "2020/05/29/2") {
			last = r
		}
	}
	code, stdout, stderr := call(t, "find", "--id", header(last, "ce_id"))
	if code != exitOK || !strings.Contains(stdout, "\n  position  "+header(last, "position")+"\n") ||
		!strings.Contains(stdout, "\n  record    topic ") ||
		!strings.Contains(stderr, "damaged at log/00/2020/05/27/1500/00000.avro, offset 2434: events in that place are") {
		t.Errorf("exit code %d: %s%s", code, stdout, stderr)
	}
	if code, _, stderr := call(t, "find", "--id", "none"); code != exitFailed ||
		!strings.Contains(stderr, "the block can't be ") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// What the state does not know, or no state, is no reason to overlook a record.
func TestFindWithoutProgress(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	runToEnd(t)
	found := func(when string) {
		t.Helper()
		for _, f := range found(t, "container0/blob0") {
			if f.Fate != find.Delivered || f.Record == nil || f.Why != "" {
				t.Errorf("%s: %+v", when, f)
			}
		}
	}
	if code, _, stderr := call(t, "reset", "--yes"); code != exitOK {
		t.Fatal(stderr)
	}
	found("after a reset")
	if code, _, stderr := call(t, "verify", "--feed"); code != exitSettings ||
		!strings.Contains(stderr, "bridge b has delivered nothing since its reset") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	if _, err := fakebroker.Admin(t, c).DeleteTopics(t.Context(), "b.offsets"); err != nil {
		t.Fatal(err)
	}
	found("without the state")
	if code, _, stderr := call(t, "verify", "--feed"); code != exitSettings ||
		!strings.Contains(stderr, "no bridge of the name b has stored anything") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

// A path with more events than are looked for at once: each is shown once, in the order of the feed.
func TestFindOfManyEvents(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	dir := t.TempDir()
	spec := feedsim.Spec{EventsPerSegment: 20_010, Blobs: 1, Containers: []string{"c"}}
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), spec, nil); err != nil {
		t.Fatal(err)
	}
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+dir)
	all := found(t, "c/dir000/file-000000.bin")
	if len(all) != spec.EventsPerSegment {
		t.Fatalf("%d events are found, want %d", len(all), spec.EventsPerSegment)
	}
	for i := 1; i < len(all); i++ {
		before, now := position(t, all[i-1]), position(t, all[i])
		if now.Offset < before.Offset || now.Offset == before.Offset && now.Index != before.Index+1 {
			t.Fatalf("%s is shown behind %s", all[i].Position, all[i-1].Position)
		}
	}
}

func position(t *testing.T, f find.Found) source.Position {
	t.Helper()
	p, err := source.ParsePosition(f.Position)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
