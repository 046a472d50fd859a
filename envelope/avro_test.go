package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/hamba/avro/v2"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

// random returns an event made of a number: every field empty, plain or odd.
func random(seed uint64) ocf.Event {
	rng := rand.New(rand.NewPCG(seed, 1))
	texts := []string{"", "", "a", "image/png", "a b&<>\"\\\n", "é😀\u2028", "bad\xff\xfeutf8",
		strings.Repeat("long/", 40)}
	s := func() string { return texts[rng.IntN(len(texts))] }
	pairs := func() (p []ocf.Pair) {
		for range rng.IntN(4) {
			p = append(p, ocf.Pair{Name: s(), Value: s()})
		}
		return p
	}
	ev := ocf.Event{
		SchemaVersion: rng.Int64N(9), PreviousInfo: pairs(), AsyncOperationInfo: pairs(), RestorePointMarker: pairs(),
		Extra: pairs(),
	}
	for _, f := range ocf.Fields {
		if f.Shape == ocf.Text {
			f.SetText(&ev, s())
		}
	}
	ev.Subject = subjectPrefix + "c" + strings.ReplaceAll(s(), "/", "") + "/blobs/b" + s()
	ev.EventType = []string{"BlobCreated", "BlobDeleted", "BlobTierChanged", "Brand\xffNew"}[rng.IntN(4)]
	ev.EventTime = time.Unix(rng.Int64N(9e9), rng.Int64N(1e9)/100*100).UTC().Format("2006-01-02T15:04:05.0000000Z")
	ev.Sequencer = fmt.Sprintf("%x", rng.Uint64())
	if rng.IntN(2) == 0 {
		ev.ContentLength, ev.HasContentLength = rng.Int64()>>rng.IntN(64)-rng.Int64N(2)*1000, true
	}
	for range rng.IntN(3) {
		ev.BlobPropertiesUpdated = append(ev.BlobPropertiesUpdated, ocf.PropertyChange{Name: s(), Current: s(),
			Previous: s()})
		ev.BlobTagsUpdated = append(ev.BlobTagsUpdated, ocf.TagSet{Name: s(), Tags: pairs()})
	}
	return ev
}

// oracles are pairs of encoders that say the same in JSON and Avro.
func oracles(t testing.TB) (all [][2]*Encoder) {
	for _, env := range []Envelope{Wrapped, Bare, Enriched} {
		for _, diff := range []bool{false, true} {
			o := Defaults(Avro, env)
			o.Topic, o.Account, o.AvroTimestamps, o.Diff, o.TopicInValue = "a-topic", "acct", Text, diff &&
				env != Bare, diff
			o.Register = func(Subject) (int, error) { return 7, nil }
			o.Now = func() int64 { return 1759644428999999999 }
			if env == Wrapped {
				o.Events = EventsAll
			}
			j := o
			j.Format, j.KeyFormat, j.AvroTimestamps = JSON, KeyJSONObject, Micros
			all = append(all, [2]*Encoder{encoder(t, j), encoder(t, o)})
		}
	}
	return all
}

// agree fails if an event in Avro does not say what it says in JSON: read by hamba, and byte for byte by our reader.
func agree(t testing.TB, pair [2]*Encoder, ev *ocf.Event) {
	t.Helper()
	var inJSON, inAvro Record
	_, emit, err1 := pair[0].Append(nil, &inJSON, ev, source.Position{Segment: segment("2020/05/27/1500")})
	_, _, err2 := pair[1].Append(nil, &inAvro, ev, source.Position{Segment: segment("2020/05/27/1500")})
	if err1 != nil || err2 != nil {
		t.Fatal(err1, err2)
	}
	if !emit {
		return
	}
	schemas := pair[1].schemas()
	value := func(i int, message []byte) any {
		s := parsed(t, schemas[i].Schema)
		d := &avroReader{t: t, b: message[5:]}
		read := (&avroReader{t: t, b: message[5:]}).read(s, hambaBranches)
		plain := d.read(s, noBranches)
		var byHamba any
		if err := avro.Unmarshal(s, message[5:], &byHamba); err != nil {
			t.Fatal(err)
		}
		if len(d.b) > 0 || !reflect.DeepEqual(normal(byHamba), normal(read)) {
			t.Fatalf("%d bytes are left; hamba reads\n%v, not\n%v", len(d.b), normal(byHamba), normal(read))
		}
		return plain
	}
	same := func(i int, message, text []byte) {
		var want any
		d := json.NewDecoder(bytes.NewReader(text))
		d.UseNumber()
		if err := d.Decode(&want); err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		got := normal(value(i, message))
		if want = normal(flat(want)); !reflect.DeepEqual(got, want) {
			t.Errorf("event %+v is in Avro\n%v, in JSON\n%v", ev, got, want)
		}
	}
	same(0, inAvro.Key, inJSON.Key)
	same(1, inAvro.Value, inJSON.Value)
}

// flat turns the shapes of JSON into those of Avro: the key is a record, and so are rows that JSON has among metadata.
func flat(v any) any {
	m, ok := v.(map[string]any)
	if !ok {
		return v
	}
	if key, ok := m["key"].([]any); ok {
		m["key"] = map[string]any{"path": key[0]}
	}
	if _, bare := m["event_id"]; bare {
		out := map[string]any{"record": m}
		if meta, ok := m["__crdb__"].(map[string]any); ok {
			delete(m, "__crdb__")
			for name, v := range flat(meta).(map[string]any) {
				out[name] = v
			}
		}
		return out
	}
	return m
}

// normal makes values comparable: nulls are left out, since JSON has fewer fields, and numbers are texts.
func normal(v any) any {
	switch v := v.(type) {
	case int64, int:
		return fmt.Sprint(v)
	case json.Number:
		return v.String()
	case []any:
		out := []any{}
		for _, e := range v {
			out = append(out, normal(e))
		}
		return out
	case map[string]any:
		out := map[string]any{}
		for name, e := range v {
			if e = normal(e); e != nil {
				out[name] = e
			}
		}
		return out
	}
	return v
}

func TestAvroAgrees(t *testing.T) {
	events := append(made(), realEvents(t)[:200]...)
	seeds := uint64(500)
	if testing.Short() {
		seeds = 50
	}
	for seed := range seeds {
		events = append(events, random(seed))
	}
	for _, pair := range oracles(t) {
		for i := range events {
			agree(t, pair, &events[i])
		}
	}
}

func FuzzAvro(f *testing.F) {
	f.Add(uint64(1), "a b", "c\xffd", int64(-5))
	f.Fuzz(func(t *testing.T, seed uint64, blob, text string, n int64) {
		ev := random(seed)
		ev.Subject += blob
		ev.ContentType, ev.ContentLength = text, n
		ev.Extra = append(ev.Extra, ocf.Pair{Name: blob, Value: text}, ocf.Pair{Name: text, Value: blob})
		for _, pair := range oracles(t) {
			agree(t, pair, &ev)
		}
	})
}

// The time of an event is a number of the unit that was asked for, and null where it is unknown.
func TestAvroTimestamps(t *testing.T) {
	for unit, want := range map[AvroTimestamps]string{
		Micros: `{"long":1759644428000000}`, Millis: `{"long":1759644428000}`,
		Text: `{"string":"2025-10-05T06:07:08.0000001Z"}`,
	} {
		o := Options{Format: Avro, Topic: "t", AvroTimestamps: unit, Register: func(Subject) (int, error) {
			return 1, nil
		}, Diff: true}
		e := encoder(t, o)
		var r Record
		for _, ev := range made()[:2] {
			if _, _, err := e.Append(nil, &r, &ev, source.Position{}); err != nil {
				t.Fatal(err)
			}
			text := avroJSON(t, e.schemas()[0].Schema, r.Value)
			if r.Kind == Upsert && !strings.Contains(text, `"event_time":`+want) ||
				r.Kind == Delete && !strings.Contains(text, `"event_time":null`) {
				t.Errorf("%s: %s", unit, text)
			}
		}
	}
}
