package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"
	"unicode/utf8"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

func TestGolden(t *testing.T) {
	events := made()
	seen := map[string]bool{}
	for _, e := range realEvents(t) { // one of each kind and schema version
		if k := fmt.Sprint(e.SchemaVersion, e.EventType, e.API); !seen[k] {
			seen[k] = true
			events = append(events, e)
		}
	}
	enc := encoder(t, everything)
	var b bytes.Buffer
	var r Record
	for i := range events {
		_, emit, err := enc.Append(nil, &r, &events[i], source.Position{Segment: segment("2020/05/27/1500"), Chunk: 1,
			Offset: 1488, Index: i})
		if err != nil || !emit {
			t.Fatalf("%+v: %v, %v", events[i], emit, err)
		}
		fmt.Fprintf(&b, "kind %d, timestamp %d\nkey   %s\nvalue %s\n", r.Kind, r.Millis, r.Key, r.Value)
		for _, h := range r.Headers {
			fmt.Fprintf(&b, "  %s: %q\n", h.Key, h.Value)
		}
	}
	m := enc.Resolved(Timestamp{Wall: 1590609600000000000})
	fmt.Fprintf(&b, "marker %d %s %s=%s\n", m.Millis, m.Value, m.Headers[0].Key, m.Headers[0].Value)
	const file = "testdata/records.golden"
	if *update {
		if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(b.Bytes(), want) {
		t.Errorf("records differ from %s; go test -update shows how", file)
	}
}

// Every value is JSON that says what the event says, columns sorted, and the classification decides what is emitted.
func TestValues(t *testing.T) {
	for _, o := range []Options{everything, {Updated: true}, {KeyInValue: true, KeyFormat: KeyString,
		Events: EventsAll}, {KeyFormat: KeyJSONObject, Headers: HeadersNone, Events: EventsAll}} {
		enc := encoder(t, o)
		var r Record
		for _, ev := range append(made(), realEvents(t)...) {
			buf, emit, err := enc.Append([]byte("before"), &r, &ev, source.Position{})
			if err != nil {
				t.Fatal(err)
			}
			kind := Classify(&ev)
			if want := kind == Upsert || kind == Delete || o.Events == EventsAll; emit != want {
				t.Errorf("%s of kind %d is emitted: %v", ev.EventType, kind, emit)
			}
			if !emit {
				continue
			}
			if !bytes.HasPrefix(buf, []byte("before")) {
				t.Fatal("Append wrote over the buffer")
			}
			var v struct {
				After   map[string]any
				Key     []string
				Updated string
			}
			if err := json.Unmarshal(r.Value, &v); err != nil {
				t.Fatalf("%s: %v", r.Value, err)
			}
			if (v.After == nil) != (kind == Delete) || (v.Updated != "") != o.Updated ||
				(v.Key != nil) != o.KeyInValue {
				t.Errorf("%+v: %s", o, r.Value)
			}
			if v.After != nil && (len(v.After) != len(enc.table.columns) || v.After["event_id"] != ev.ID) {
				t.Errorf("%d columns: %s", len(v.After), r.Value)
			}
			if o.Headers == HeadersNone != (len(r.Headers) == 0) {
				t.Errorf("%d headers", len(r.Headers))
			}
		}
	}
}

func TestKeys(t *testing.T) {
	ev := made()[0]
	for f, want := range map[KeyFormat]string{KeyJSONArray: `["photos/a b.jpg"]`,
		KeyJSONObject: `{"path": "photos/a b.jpg"}`, KeyString: `photos/a b.jpg`} {
		var r Record
		if _, _, err := encoder(t, Options{KeyFormat: f}).Append(nil, &r, &ev, source.Position{}); err != nil ||
			string(r.Key) != want {
			t.Errorf("%d: %s, %v", f, r.Key, err)
		}
	}
}

func TestBadEvents(t *testing.T) {
	for name, change := range map[string]func(*ocf.Event){
		"subject":    func(e *ocf.Event) { e.Subject = "/other/a" },
		"no blob":    func(e *ocf.Event) { e.Subject = "/blobServices/default/containers/c/blobs/" },
		"event time": func(e *ocf.Event) { e.EventTime = "yesterday" },
		"overflow":   func(e *ocf.Event) { e.EventTime = "9999-01-01T00:00:00.0000000Z" },
	} {
		ev := made()[0]
		change(&ev)
		var r Record
		if _, _, err := encoder(t, everything).Append(nil, &r, &ev, source.Position{}); err == nil ||
			!strings.Contains(err.Error(), ev.ID) {
			t.Errorf("%s: %v", name, err)
		}
	}
	control := ocf.Event{EventType: "Control", Subject: "/blobServices/default/containers//blobs/"}
	var r Record
	if _, emit, err := encoder(t, everything).Append(nil, &r, &control, source.Position{}); emit || err != nil {
		t.Errorf("Control: %v, %v", emit, err)
	}
}

func TestUpdated(t *testing.T) {
	ev := made()[0]
	var r Record
	if _, _, err := encoder(t, everything).Append(nil, &r, &ev, source.Position{}); err != nil {
		t.Fatal(err)
	}
	// 2025-10-05T06:07:08.0000001Z, and 0x58eb1f = 5827359
	if got := r.Updated.String(); got != "1759644428000000100.0005827359" {
		t.Error(got)
	}
	for s, want := range map[string]int32{"": 0, "xyz": 0, "ffffffff": 0x7fffffff, "12": 0x12, "0000000180000001": 1} {
		if got := logical(s); got != want {
			t.Errorf("logical(%q) = %d, want %d", s, got, want)
		}
	}
}

// Strings are looked at eight bytes at a time: every byte must be found at every place of a word, and behind the words.
func TestStringFindsEveryByte(t *testing.T) {
	const around = "0123456789ABCDEFGHI\x7f"
	for c := range 256 {
		for at := range len(around) {
			s := around[:at] + string([]byte{byte(c)}) + around[at:]
			if got := valid(s); got != utf8.ValidString(s) {
				t.Errorf("valid(%q) = %v", s, got)
			}
			var want bytes.Buffer
			enc := json.NewEncoder(&want)
			enc.SetEscapeHTML(false)
			if err := enc.Encode(s); err != nil {
				t.Fatal(err)
			}
			got := string(appendString(nil, s)) + "\n"
			if short := strings.NewReplacer(`\b`, `\u0008`, `\f`, `\u000c`).Replace(want.String()); got != short {
				t.Errorf("%q becomes %s, want %s", s, got, short)
			}
		}
	}
}

func FuzzString(f *testing.F) {
	for _, e := range made() {
		f.Add(e.Subject)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var got string
		if err := json.Unmarshal(appendString(nil, s), &got); err != nil {
			t.Fatal(err)
		}
		if want := strings.ToValidUTF8(s, "\ufffd"); utf8.ValidString(s) && got != want {
			t.Errorf("%q becomes %q", s, got)
		}
	})
}

func FuzzTimestamp(f *testing.F) {
	f.Add(int64(1590607342135129200), int32(45))
	f.Fuzz(func(t *testing.T, wall int64, logical int32) {
		ts := Timestamp{wall, logical}
		if wall < 0 || logical < 0 {
			return
		}
		if back, err := ParseTimestamp(ts.String()); err != nil || back != ts {
			t.Errorf("%v: %v, %v", ts, back, err)
		}
	})
}

// encoding/json writes the same values, without key and headers.
func BenchmarkEncodingJSON(b *testing.B) {
	type value struct {
		After   map[string]any `json:"-"`
		Row     wholeRow       `json:"after"`
		Key     []string       `json:"key"`
		Updated string         `json:"updated"`
	}
	events := realEvents(b)
	for b.Loop() {
		for i := range events {
			e := &events[i]
			container, blob, _ := subject(e.Subject)
			path := container + "/" + blob
			wall, err := parseTime(e.EventTime)
			if err != nil {
				b.Fatal(err)
			}
			if _, err := json.Marshal(value{Key: []string{path},
				Updated: Timestamp{wall, logical(e.Sequencer)}.String(), Row: wholeRow{
					Account: account(e.Topic), API: e.API, Blob: blob, BlobType: e.BlobType,
					ClientRequestID: e.ClientRequestID, Container: container,
					ContentLength: e.ContentLength, ContentType: e.ContentType, ETag: e.ETag, EventID: e.ID,
					EventTime: e.EventTime, EventType: e.EventType,
					Path: path, RequestID: e.RequestID, SchemaVersion: e.SchemaVersion, Sequencer: e.Sequencer,
				}}); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(b.N*len(events))/b.Elapsed().Seconds(), "events/s")
}

type wholeRow struct {
	Account          string            `json:"account"`
	API              string            `json:"api"`
	Async            map[string]string `json:"async_operation_info"`
	Blob             string            `json:"blob"`
	Properties       map[string]string `json:"blob_properties_updated"`
	Tags             map[string]string `json:"blob_tags_updated"`
	BlobTier         *string           `json:"blob_tier"`
	BlobType         string            `json:"blob_type"`
	BlobVersion      *string           `json:"blob_version"`
	ClientRequestID  string            `json:"client_request_id"`
	Container        string            `json:"container"`
	ContainerVersion *string           `json:"container_version"`
	ContentLength    int64             `json:"content_length"`
	ContentType      string            `json:"content_type"`
	ETag             string            `json:"etag"`
	EventID          string            `json:"event_id"`
	EventTime        string            `json:"event_time"`
	EventType        string            `json:"event_type"`
	Extra            map[string]string `json:"extra"`
	Path             string            `json:"path"`
	PreviousInfo     map[string]string `json:"previous_info"`
	RequestID        string            `json:"request_id"`
	Restore          map[string]string `json:"restore_point_marker"`
	SchemaVersion    int64             `json:"schema_version"`
	Sequencer        string            `json:"sequencer"`
	Snapshot         *string           `json:"snapshot"`
	URL              *string           `json:"url"`
}
