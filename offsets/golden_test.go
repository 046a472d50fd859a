package offsets

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/source"
	"blobfeed/source/inventory"
)

var update = flag.Bool("update", false, "write the golden files of the current version")

// documentsOf returns every document with every field set.
func documentsOf(t *testing.T) map[string]any {
	at := time.Date(2026, 1, 31, 12, 0, 1, 500, time.UTC)
	return map[string]any{
		keyCursor: &Cursor{
			Version: Version, Owner: "host-7", Time: at, Epoch: 2, Term: 12, Segment: segment(t, "2026/01/31/1200"),
			Shards: map[string]source.ShardPosition{
				"00": {Chunk: 1, Offset: 4096},
				"16": {Chunk: 2, Offset: 0},
			}, Done: true, Gap: true,
			Pins:     map[string]Pin{"blobs.photos": {Partitions: 6, KeySchema: 11}},
			Resolved: "1769856300000000000.0000000000",
			Counts:   Counts{Read: 5, Emitted: 4, Filtered: 3, Unknown: 1, Late: 2, DeadLettered: 1, Scanned: 6},
			Scan: &Listing{
				ID: "20260131T120000Z", Held: 2, Over: 1, Done: true, Rows: 7, Swept: 1, MayDelete: 3,
				From: segment(t, "2026/01/31/1100"),
				Progress: inventory.Progress{
					Next: "photos", Exhausted: true, Open: []inventory.Range{
						{ID: 3, Container: "photos", From: "b", After: "b/ü", End: "c", Rows: 6,
							Hint: &inventory.Hint{Marker: "2!92", From: "b", Prefix: "b/"}},
					}, Page: "2!76", Served: at, Rows: 7, Pages: 2, Containers: 1,
				},
				Judged: &Lane{Topic: "blobs.photos", Partition: 4}, Skipped: 2, LeftOut: "other accounts",
				Within: &Within{Lane: Lane{Topic: "blobs.photos", Partition: 5}, To: 77}, Stopped: true,
			},
			Event: at.Add(-time.Minute), Ahead: 123, Listed: 456,
			Error: &Failure{Time: at, Error: "no route to host", Remedy: "add one"}, Failing: true,
		},
		keyFrontier: &Frontier{
			Version: Version, Owner: "host-7", Time: at, Epoch: 2, Term: 9, Base: segment(t, "2026/01/31/1000"),
			Seen:   []int64{7, 0},
			Moving: true, Reset: true, Born: 1, Leases: 16,
			Shards: []int{
				0,
				16,
			}, Ends: at.Add(time.Hour), OpenSince: at.Add(2 * time.Hour), Owed: true,
			Completed: segment(t, "2026/01/31/1100"),
			Since:     segment(t, "2026/01/31/0400"),
			Earlier: []Stretch{{After: segment(t, "2026/01/30/1000"), To: segment(t, "2026/01/30/1600"),
				From: "1769767200000000000.0000000000"}},
			Current:  segment(t, "2026/01/31/1200"),
			Resolved: "1769859900000000000.0000000000", Feed: "https://a.blob.core.windows.net/",
			Start: "1769850000000000000.0000000000", Ended: true,
			Gap: &Gap{From: segment(t, "2026/01/30/1000"), To: segment(t, "2026/01/31/1000")}, Gaps: 1,
			CatchUp: &CatchUp{Done: 3, Left: 4, Since: at, From: 1, Read: 5},
			Seek:    &Seek{From: segment(t, "2026/01/31/1100"), To: "earliest", Told: true}, Replaced: 1,
			Repeat: &Repeat{Topics: []string{"blobs.videos"}, Resolved: "1590600000000000000.0000000000"},
			Scan: &Scan{
				ID: "20260131T120000Z", Initial: true, Only: true, Sweep: true, Container: "photos", Prefix: "b",
				Requested: at, Updated: "1769856300000000000.0000000000", Begin: segment(t, "2026/01/31/1200"),
				Containers: 3, Bar: "1769860700000000000.0000000000", Request: "20260131T120000Z", Round: 2, Phase: ScanLists,
				Listed: "1769860800000000000.0000000000", Done: true, Cancelled: true, MaxDeletions: 9,
				ScanResult: ScanResult{Ended: at, Rows: 7, Deleted: 1, LeftOut: "other accounts", Skipped: 2, Stopped: true},
				Former: []FormerScan{{
					ID: "20260130T120000Z", Initial: true, Sweep: true, Container: "photos", Prefix: "a", Requested: at,
					Cancelled:  true,
					ScanResult: ScanResult{Ended: at, Rows: 6, Deleted: 2, LeftOut: "other accounts", Skipped: 1},
				}},
			},
			Settings: map[string]string{
				"BRIDGE_TOPIC": "blobs.{container}",
			}, Topics: map[string]int32{"blobs.photos": 6}, KeySchemas: map[string]int{"blobs.photos": 11},
		},
		keyOwner:     &owner{Version: Version, Owner: "host-7", Time: at},
		keyDelivered: &Delivered{Version: Version, Owner: "host-7", Time: at},
		keyRequest: &Request{
			Version: Version, Epoch: 2, ID: "20260131T120000Z", Time: at, Cancel: true, Sweep: true,
			Container: "photos", Prefix: "b", MaxDeletions: 9,
		},
	}
}

// What is stored keeps its form: a change here is a change of the public contract, and of other versions it is
// a new Version, with golden files of its own beside those that stay.
func TestGolden(t *testing.T) {
	for key, want := range documentsOf(t) {
		t.Run(key, func(t *testing.T) {
			everyField(t, reflect.ValueOf(want).Elem(), key)
			file := filepath.Join("testdata", fmt.Sprintf("%s.v%d.json", key, Version))
			text, err := json.MarshalIndent(want, "", "  ")
			if err != nil {
				t.Fatal(err)
			}
			text = append(text, '\n')
			if *update {
				if err := os.WriteFile(file, text, 0o644); err != nil {
					t.Fatal(err)
				}
			}
			golden, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(golden, text) {
				t.Errorf("%s is not what is written now:\n%s", file, text)
			}
			got := reflect.New(reflect.TypeOf(want).Elem()).Interface()
			if err := documents.decode(key, golden, got); err != nil {
				t.Fatal(err)
			}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("%s is read as %+v, want %+v", file, got, want)
			}
		})
	}
}

// everyField fails for a field that the golden file would not show.
func everyField(t *testing.T, v reflect.Value, path string) {
	switch v.Kind() {
	case reflect.Pointer:
		everyField(t, v.Elem(), path)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[source.Segment]() {
			break
		}
		for i := range v.NumField() {
			if v.Field(i).IsZero() {
				t.Errorf("%s.%s is not set: the golden file does not show it", path, v.Type().Field(i).Name)
				continue
			}
			everyField(t, v.Field(i), path+"."+v.Type().Field(i).Name)
		}
	}
}

// Every golden file of every version is read, the first ones without later fields included.
func TestOldDocumentsAreRead(t *testing.T) {
	files, err := filepath.Glob("testdata/*.json")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		key, _, _ := strings.Cut(filepath.Base(file), ".")
		v := NewView(stateTopic, 1)
		if err := v.apply(&kgo.Record{Key: []byte(key), Value: text}); err != nil {
			t.Errorf("%s: %v", file, err)
		}
	}
	first, err := os.ReadFile("testdata/cursor.v1-first.json")
	if err != nil {
		t.Fatal(err)
	}
	var c Cursor
	if err := documents.decode(keyCursor, first, &c); err != nil ||
		c.At(segment(t, "2020/05/27/1500"), 0) != (source.ShardPosition{Chunk: 0, Offset: 4711}) ||
		c.Epoch != 0 {
		t.Errorf("%+v, %v", c, err)
	}
}

// A version reads those before it, step by step, and refuses a newer one by name.
func TestVersions(t *testing.T) {
	third := codec{version: 3, upgrades: map[int]upgrade{
		1: func(_ string, f map[string]json.RawMessage) error { // "host" became "owner"
			f["owner"] = f["host"]
			delete(f, "host")
			return nil
		},
		2: func(key string, f map[string]json.RawMessage) error {
			if f["owner"] == nil {
				return errors.New("no owner")
			}
			f["owner"] = json.RawMessage(`"` + key + ` of ` + strings.Trim(string(f["owner"]), `"`) + `"`)
			return nil
		},
	}}
	for text, want := range map[string]string{
		`{"version":1,"host":"a","counts":{"read":9007199254740993}}`:  "cursor of a",
		`{"version":2,"owner":"b","counts":{"read":9007199254740993}}`: "cursor of b",
		`{"version":3,"owner":"c","counts":{"read":9007199254740993}}`: "c",
	} {
		var c Cursor
		if err := third.decode(keyCursor, []byte(text), &c); err != nil || c.Owner != want ||
			c.Counts.Read != 9007199254740993 {
			t.Errorf("%s: %+v, %v", text, c, err)
		}
	}
	var c Cursor
	err := third.decode(keyCursor, []byte(`{"version":4,"owner":"d"}`), &c)
	var newer *VersionError
	if !errors.As(err, &newer) || c.Owner != "" ||
		err.Error() != "the cursor in the offsets topic has version 4, this bridge reads up to 3; run the newer bridge "+
			"that wrote it" {
		t.Errorf("%v, %+v", err, c)
	}
	if err := third.decode(keyCursor, []byte(`{"version":2}`), &c); err == nil ||
		!strings.Contains(err.Error(), "version 2: no owner") {
		t.Errorf("a step that fails: %v", err)
	}
	for n := 1; n < Version; n++ {
		if documents.upgrades[n] == nil {
			t.Errorf("there is no way from version %d", n)
		}
	}
}
