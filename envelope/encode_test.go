package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

// forms are the defaults of every format and envelope, and each with all on that it can have.
func forms() (all []form) {
	for f := range Avro + 1 {
		for env := range Enriched + 1 {
			if f == Avro && env == Row {
				continue
			}
			o := Defaults(f, env)
			o.Topic, o.Account = "blob-changes", "acct"
			o.Register = func(s Subject) (int, error) { return len(s.Name), nil }
			o.Now = func() int64 { return 1759644429000000000 }
			full := o
			if env == Enriched {
				full.Properties, full.KeyFormat = Source, KeyJSONObject
			}
			for _, option := range []func(*Options){
				func(o *Options) { o.MVCCTimestamp = true }, func(o *Options) { o.TopicInValue = true },
				func(o *Options) { o.Diff = true },
				func(o *Options) { o.Deletes = DeletesBoth }, func(o *Options) { o.Properties |= Schema },
				func(o *Options) { o.AvroTimestamps = Millis },
			} {
				with := full
				if option(&with); with.Validate() == nil {
					full = with
				}
			}
			all = append(all, form{fmt.Sprintf("%s,%s", f, env), o}, form{fmt.Sprintf("%s,%s,all", f, env), full})
		}
	}
	return all
}

type form struct {
	name string
	o    Options
}

// Schemas are registered when the encoder is made, and their ids are in front of what is written by them.
func TestRegister(t *testing.T) {
	ids := map[string]int{"t-key": 0x01020304, "t-value": 5, "t.resolved-value": 6}
	for m, subjects := range map[Markers]string{MarkersInline: "t-key t-value",
		MarkersTopic: "t-key t-value t.resolved-value", MarkersOff: "t-key t-value"} {
		var registered []string
		e := encoder(t, Options{Format: Avro, KeyFormat: KeyAvro, Topic: "t", Markers: m,
			Register: func(s Subject) (int, error) {
				registered = append(registered, s.Name)
				return ids[s.Name], nil
			}})
		if got := strings.Join(registered, " "); got != subjects {
			t.Errorf("%s: %s", m, got)
		}
		var r Record
		if _, _, err := e.Append(nil, &r, &made()[0], source.Position{}); err != nil {
			t.Fatal(err)
		}
		marker := e.Resolved(Timestamp{1, 2})
		id := map[Markers]byte{MarkersInline: 5, MarkersTopic: 6}[m]
		if !bytes.HasPrefix(r.Key, []byte{0, 1, 2, 3, 4}) || !bytes.HasPrefix(r.Value, []byte{0, 0, 0, 0, 5}) ||
			m != MarkersOff && !bytes.HasPrefix(marker.Value, []byte{0, 0, 0, 0, id}) ||
			m == MarkersOff && (marker.Value != nil || marker.Headers != nil) {
			t.Errorf("%s: %x, %x, %x", m, r.Key, r.Value, marker.Value)
		}
	}
}

// What an event tells of the row before it is written; what it does not tell is not guessed.
func TestBefore(t *testing.T) {
	base := made()[0]
	for name, c := range map[string]struct {
		change func(*ocf.Event)
		told   bool
		op     string
		before string // what is in it besides the identity
	}{
		"create": {func(*ocf.Event) {}, false, "c", ""},
		"overwrite": {func(e *ocf.Event) { e.PreviousInfo = []ocf.Pair{{Name: "LastVersion", Value: "v1"}} }, true, "u",
			`"blob_version": "v1"`},
		"undelete": {func(e *ocf.Event) { e.EventType, e.API = "BlobPropertiesUpdated", "UndeleteBlob" }, false, "c",
			""},
		"metadata": {func(e *ocf.Event) { e.EventType = "BlobMetadataUpdated" }, false, "u", ""},
		"tier": {func(e *ocf.Event) {
			e.EventType, e.PreviousInfo = "BlobTierChanged", []ocf.Pair{{Name: "PreviousTier", Value: "Hot"}}
		}, true, "u", `"blob_tier": "Hot"`},
		"content type": {func(e *ocf.Event) {
			e.EventType, e.BlobPropertiesUpdated = "BlobPropertiesUpdated", []ocf.PropertyChange{{Name: "ContentType",
				Previous: "a/b", Current: "c/d"}}
		}, true, "u", `"content_type": "a/b"`},
		"delete": {func(e *ocf.Event) { e.EventType = "BlobDeleted" }, true, "d",
			`"blob_type": "BlockBlob", "content_length": 5`},
	} {
		ev := base
		c.change(&ev)
		value := func(o Options) string {
			var r Record
			if _, _, err := encoder(t, o).Append(nil, &r, &ev, source.Position{}); err != nil {
				t.Fatal(err)
			}
			return string(r.Value)
		}
		identity := []string{`"account": "simacct"`, `"blob": "a b.jpg"`, `"container": "photos"`,
			`"path": "photos/a b.jpg"`}
		row := func(value string) string { // its columns that are not null, but the identity
			_, before, _ := strings.Cut(value, `"before": {`)
			before, _, _ = strings.Cut(before, "}")
			var told []string
			for _, column := range strings.Split(before, ", ") {
				if !strings.HasSuffix(column, ": null") && !strings.Contains(strings.Join(identity, " "), column) {
					told = append(told, column)
				}
			}
			return strings.Join(told, ", ")
		}
		wrapped := value(Options{Diff: true})
		if strings.Contains(wrapped, `"before": null`) == c.told || c.told && row(wrapped) != c.before {
			t.Errorf("%s: %s", name, wrapped)
		}
		full := value(Options{Envelope: Enriched, Diff: true})
		if strings.Contains(full, `"before": null`) != (c.op == "c") || row(full) != c.before ||
			!strings.Contains(full, `"op": "`+c.op+`"`) {
			t.Errorf("%s: %s", name, full)
		}
		key := value(Options{Envelope: Enriched})
		if want := map[bool]string{true: "null",
			false: `{"path": "photos/a b.jpg"}`}[c.op == "c"]; !strings.Contains(key, `"before": `+want) {
			t.Errorf("%s: %s", name, key)
		}
	}
}

func TestDeletes(t *testing.T) {
	ev := made()[1]
	for d, want := range map[Deletes]string{
		DeletesEnvelope: `{"after": null} false false`, DeletesTombstone: ` true false`,
		DeletesBoth: `{"after": null} false true`, DeletesEmpty: ` false false`,
	} {
		e := encoder(t, Options{Deletes: d})
		var r Record
		if _, _, err := e.Append(nil, &r, &ev, source.Position{}); err != nil {
			t.Fatal(err)
		}
		if got := fmt.Sprintf("%s %v %v", r.Value, r.Value == nil, r.Tombstone); got != want {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
		if _, _, err := e.Append(nil, &r, &made()[0], source.Position{}); err != nil || r.Tombstone ||
			len(r.Value) == 0 {
			t.Errorf("%s: an upsert after that: %s, %v", d, r.Value, r.Tombstone)
		}
	}
}

func TestExtraHeaders(t *testing.T) {
	ev := made()[0]
	extra := []Header{{"team", []byte("storage")}, {"x", nil}}
	for m, n := range map[HeaderMode]int{HeadersCloudEvents: len(cloudEventNames) + 1, HeadersNone: 0} {
		e := encoder(t, Options{Headers: m, ExtraHeaders: extra})
		var r Record
		for range 2 {
			if _, _, err := e.Append(nil, &r, &ev, source.Position{}); err != nil {
				t.Fatal(err)
			}
			if len(r.Headers) != n+2 || r.Headers[0].Key != "team" || r.Headers[1].Key != "x" {
				t.Errorf("%s: %v", m, r.Headers)
			}
		}
		if marker := e.Resolved(Timestamp{1, 2}); len(marker.Headers) > 0 && marker.Headers[0].Key != "resolved" {
			t.Errorf("%s: marker has %v", m, marker.Headers)
		}
	}
}

// Records of one account share the bytes of their source, and keep them when an event of another account follows.
func TestSharedSource(t *testing.T) {
	ev := made()[0]
	e := encoder(t, Options{Headers: HeadersCloudEvents})
	var r Record
	source := func(topic string) []byte {
		ev.Topic = topic
		if _, _, err := e.Append(nil, &r, &ev, source.Position{}); err != nil {
			t.Fatal(err)
		}
		i := slices.IndexFunc(r.Headers, func(h Header) bool { return h.Key == "ce_source" })
		return r.Headers[i].Value
	}
	if none := source(""); none == nil || len(none) > 0 {
		t.Errorf("the source of an event without a topic is %#v, not empty", none)
	}
	a, again, b := source("/accounts/a"), source("/accounts/a"), source("/accounts/b")
	if string(a) != "/accounts/a" || string(b) != "/accounts/b" {
		t.Errorf("sources are %q and %q", a, b)
	}
	if &a[0] != &again[0] {
		t.Error("two records of an account do not share their source")
	}
}

// Values have CloudEvents' content type; one without bytes has none.
func TestContentType(t *testing.T) {
	for _, f := range forms() {
		for _, d := range []Deletes{DeletesEnvelope, DeletesTombstone, DeletesBoth, DeletesEmpty} {
			o := f.o
			if o.Deletes = d; o.Validate() != nil {
				continue
			}
			e, events := encoder(t, o), made()
			for i := range events[:2] {
				var r Record
				if _, _, err := e.Append(nil, &r, &events[i], source.Position{}); err != nil {
					t.Fatal(err)
				}
				want := map[Format]string{JSON: "application/json", Avro: "application/avro"}[o.Format]
				if len(r.Value) == 0 {
					want = ""
				}
				got := ""
				for _, h := range r.Headers {
					if h.Key == "content-type" {
						got += string(h.Value)
					}
				}
				if got != want {
					t.Errorf("%s, deletes=%s: content type %q of a value of %d bytes", f.name, d, got, len(r.Value))
				}
			}
		}
	}
}

func TestEncodeDoesNotAllocate(t *testing.T) {
	events := append(made(), realEvents(t)[:100]...)
	pos := source.Position{Segment: segment("2020/05/27/1500")}
	all := forms()
	for _, f := range withRows() {
		f.name, f.o.Maps = f.name+", maps=json", MapsJSON
		all = append(all, f)
	}
	for _, f := range all {
		enc := encoder(t, f.o)
		buf, r := make([]byte, 0, 1<<16), Record{Headers: make([]Header, 0, 16)}
		for i := range events {
			if n := testing.AllocsPerRun(5, func() { _, _, _ = enc.Append(buf, &r, &events[i], pos) }); n > 0 {
				t.Fatalf("%s: %v allocations for %s", f.name, n, events[i].EventType)
			}
		}
	}
}

func BenchmarkEncode(b *testing.B) {
	blocks := realBlocks(b)
	pos := source.Position{Segment: segment("2020/05/27/1500")}
	for _, f := range forms() {
		b.Run(f.name, func(b *testing.B) {
			f.o.Events = EventsAll
			if f.o.Envelope == Enriched {
				f.o.Events = EventsState
			}
			enc := encoder(b, f.o)
			var buf []byte
			r := Record{Headers: make([]Header, 0, 16)}
			n := 0
			b.ReportAllocs()
			for b.Loop() {
				for _, events := range blocks {
					buf = buf[:0]
					for i := range events {
						var emit bool
						var err error
						pos.Index = i
						if buf, emit, err = enc.Append(buf, &r, &events[i], pos); err != nil {
							b.Fatal(err)
						}
						if emit {
							n++
						}
					}
				}
			}
			b.ReportMetric(float64(n)/b.Elapsed().Seconds(), "events/s")
		})
	}
}

// A marker in a topic of its own says how far the data topic's partition has to be read.
func TestResolvedUpTo(t *testing.T) {
	ts := Timestamp{1590609600000000000, 0}
	for _, c := range []struct{ f Format }{{JSON}, {Avro}} {
		o := Defaults(c.f, Enriched)
		o.Topic, o.Markers = "t", MarkersTopic
		o.Register = func(Subject) (int, error) { return 7, nil }
		e := encoder(t, o)
		for _, end := range []int64{0, 1 << 40} {
			got := string(e.ResolvedUpTo(ts, 3, end).Value)
			if c.f == Avro {
				schemas, _ := Schemas(o)
				got = avroJSON(t, schemas[len(schemas)-1].Schema, []byte(got))
			}
			want := fmt.Sprintf(`{"resolved":"1590609600000000000.0000000000","partition":3,"offset":%d}`, end)
			if c.f == Avro {
				want = fmt.Sprintf(
					`{"resolved":{"string":"1590609600000000000.0000000000"},"partition":{"long":3},"offset":{"long":%d}}`,
					end,
				)
				sameJSON(t, "avro", got, want)
			} else if got != want {
				t.Errorf("%s, want %s", got, want)
			}
		}
	}
}

// value is what a consumer reads.
type value struct {
	After   map[string]any
	Key     []string
	Updated string
}

// encoded returns the record of ev, or emit false.
func encoded(t *testing.T, o Options, ev ocf.Event) (r Record, v value, emit bool) {
	t.Helper()
	_, emit, err := encoder(t, o).Append(nil, &r, &ev, source.Position{Segment: segment("2026/01/01/0000")})
	if err != nil {
		t.Fatalf("%+v: %v", ev, err)
	}
	if emit {
		if err := json.Unmarshal(r.Value, &v); err != nil {
			t.Fatalf("%s: %v", r.Value, err)
		}
	}
	return r, v, emit
}

// changed returns the first of the made events with a change.
func changed(change func(e *ocf.Event)) ocf.Event {
	e := made()[0]
	change(&e)
	return e
}

const state, all = EventsState, EventsAll
