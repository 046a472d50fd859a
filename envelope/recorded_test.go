package envelope

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"blobfeed/internal/testing/realfeed"
	"blobfeed/source/ocf"
)

// The evidence for what Classify says of deletions: of those that Azure recorded, none names a snapshot or a version. In
// an account with versions, one names the version that was the current one, and nothing else. A blob with snapshots or
// older versions is deleted by one event, like any other. A snapshot is named only by the event of its creation. Every
// recorded type has a rule.
func TestRecordedDeletions(t *testing.T) {
	events := realEvents(t)
	for _, a := range realfeed.Accounts {
		files, err := filepath.Glob(filepath.Join(a.Unpack(t, ".."), "log/*/*/*/*/*/*.avro"))
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			events = slices.Concat(events, slices.Concat(blocksOf(t, f)...))
		}
	}
	slices.SortStableFunc(events, func(a, b ocf.Event) int { return strings.Compare(a.EventTime, b.EventTime) })
	var deletions, withLast, snapshots, undeleted, ofSnapshots, ofVersions int
	type blob struct{ snapshots, versions, deletions int }
	blobs := map[[2]string]*blob{}
	for i := range events {
		ev := &events[i]
		kind := Classify(ev)
		b := blobs[[2]string{ev.Topic, ev.Subject}]
		if b == nil {
			b = new(blob)
			blobs[[2]string{ev.Topic, ev.Subject}] = b
		}
		if ev.EventType == "BlobCreated" {
			b.deletions = 0
			if ev.BlobVersion != "" {
				b.versions++
			}
		}
		if kind == Unknown {
			t.Errorf("%s: type %s has no rule", ev.Subject, ev.EventType)
		}
		if ev.Snapshot != "" {
			snapshots++
			b.snapshots++
			if ev.EventType != "BlobSnapshotCreated" || kind != Other {
				t.Errorf("%s: %s of snapshot %s is kind %d", ev.Subject, ev.EventType, ev.Snapshot, kind)
			}
		}
		if ev.API == "UndeleteBlob" {
			undeleted++
			if ev.EventType != "BlobCreated" || kind != Upsert {
				t.Errorf("%s: UndeleteBlob is %s, kind %d", ev.Subject, ev.EventType, kind)
			}
		}
		if ev.EventType != "BlobDeleted" {
			continue
		}
		deletions++
		if b.deletions++; b.deletions > 1 {
			t.Errorf("%s is deleted %d times", ev.Subject, b.deletions)
		}
		if b.snapshots > 0 {
			ofSnapshots++
		}
		if b.versions > 1 {
			ofVersions++
		}
		if kind != Delete || ev.BlobVersion != "" {
			t.Errorf("%s: a deletion of version %q is kind %d", ev.Subject, ev.BlobVersion, kind)
		}
		for _, p := range ev.PreviousInfo {
			if withLast++; p.Name != "LastVersion" {
				t.Errorf("%s: a deletion has %s", ev.Subject, p.Name)
			}
		}
	}
	if len(events) != 8464 || deletions != 181 || withLast != 24 || snapshots != 1420 || undeleted != 6 ||
		ofSnapshots != 20 || ofVersions != 15 {
		t.Errorf("docs/events.md and this test disagree: %d events, %d deletions, %d of them with LastVersion, "+
			"%d of blobs with snapshots, %d with versions; %d with a snapshot, %d UndeleteBlob", len(events), deletions,
			withLast, ofSnapshots, ofVersions, snapshots, undeleted)
	}
}

// The examples that Azure publishes have every field set, whatever the type: a snapshot on a creation, and versions on a
// deletion that are later than the blob's.
func TestPublishedExamples(t *testing.T) {
	for _, version := range []string{"3", "4", "5", "6"} {
		text, err := os.ReadFile("testdata/EventSchemaV" + version + ".json")
		if err != nil {
			t.Fatal(err)
		}
		var x struct {
			Topic, Subject, EventType, EventTime, ID string
			Data                                     struct {
				API, BlobVersion, Snapshot, Sequencer string
				PreviousInfo                          map[string]string
			}
		}
		if err := json.Unmarshal(text, &x); err != nil {
			t.Fatal(err)
		}
		d := &x.Data
		if x.EventType != "BlobCreated" || d.Snapshot == "" || d.PreviousInfo["BlobVersion"] <= d.BlobVersion {
			t.Fatalf("version %s is not what Azure publishes: %+v", version, x)
		}
		ev := ocf.Event{
			Topic: x.Topic, Subject: x.Subject, EventType: x.EventType, EventTime: x.EventTime, ID: x.ID, API: d.API,
			BlobVersion: d.BlobVersion, Snapshot: d.Snapshot, Sequencer: d.Sequencer,
		}
		for name, value := range d.PreviousInfo {
			ev.PreviousInfo = append(ev.PreviousInfo, ocf.Pair{Name: name, Value: value})
		}
		if _, v, emit := encoded(t, Options{Events: state, KeyInValue: true}, ev); !emit || v.After == nil {
			t.Errorf("the creation of version %s is no row: %v, %v", version, emit, v)
		}
		ev.EventType, ev.API = "BlobDeleted", "DeleteBlob"
		if _, v, emit := encoded(t, Options{Events: state, KeyInValue: true}, ev); !emit || v.After != nil {
			t.Errorf("the deletion of version %s is none: %v, %v", version, emit, v)
		}
	}
}
