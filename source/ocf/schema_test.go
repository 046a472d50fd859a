package ocf

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"strings"
	"testing"
)

// overlong writes a varint of 10 bytes whatever its value, as the service does.
func overlong(v int64) []byte {
	b := encode(v)
	for len(b) < 10 {
		b[len(b)-1] |= 0x80
		b = append(b, 0)
	}
	return b
}

func TestOverlongVarints(t *testing.T) {
	for name, write := range map[string]func(int64) []byte{
		"10 bytes": overlong,
		"9 bytes":  func(v int64) []byte { b := overlong(v)[:9]; b[8] = 0; return b },
		"2 bytes":  func(v int64) []byte { return []byte{byte(v<<1)&0x7f | 0x80, byte(v >> 6)} },
		"minimal":  encode,
	} {
		data := string(write(1)) + "a" + string(write(2)) + "bc"
		b := container("null", tiny, write(2), write(int64(len(data))), []byte(data), marker, write(1), write(2),
			[]byte("\x02d"), marker)
		blocks, evs, err := read(b)
		if err != nil || len(blocks) != 2 || len(evs) != 3 || evs[0].ID != "a" || evs[1].ID != "bc" ||
			evs[2].ID != "d" || blocks[1].End != int64(len(b)) {
			t.Errorf("%s: %v, %v", name, evs, err)
		}
	}
	// In every block of the real files, and in their headers not.
	for name, b := range chunks(t) {
		h, err := ParseHeader(b, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		for off := h.Size; off < int64(len(b)); {
			_, n := long(b[off:])
			_, m := long(b[off+int64(n):])
			blk, err := h.ReadBlock(b[off:], off)
			if n != 10 || m != 10 || err != nil {
				t.Fatalf("%s: a count of %d bytes, a size of %d, %v", name, n, m, err)
			}
			off = blk.End
		}
	}
	if _, _, err := read(container("null", tiny, []byte(strings.Repeat("\x80", 10)+"\x00"))); err == nil {
		t.Error("a varint of 11 bytes passed")
	}
}

// Headers of the same schema share a plan, unless the schema is so large that keeping it would cost memory.
func TestPlanIsShared(t *testing.T) {
	planOf := func(schema string) *Plan {
		h, err := ParseHeader(container("null", schema), Limits{})
		if err != nil {
			t.Fatal(err)
		}
		return h.Plan
	}
	first := planOf(tiny)
	if planOf(tiny) != first {
		t.Error("the schema was compiled twice")
	}
	large := strings.Replace(tiny, "{", "{"+strings.Repeat(" ", mostShared), 1)
	if kept := planOf(large); planOf(large) == kept {
		t.Error("the plan of a large schema was kept")
	}
	if planOf(strings.Replace(tiny, `"id"`, `"ie"`, 1)) == first {
		t.Error("two schemas share a plan")
	}
}

func TestCodecs(t *testing.T) {
	packed := block(marker, 1, deflated(t, "\x02a"))
	for codec, c := range map[string]struct {
		block []byte
		ok    bool
	}{
		"null": {block(marker, 1, "\x02a"), true}, "deflate": {packed, true},
		"snappy": {packed, false}, "zstandard": {packed, false}, "bzip2": {packed, false}, "xz": {packed, false},
		"":        {packed, false},
		"Deflate": {packed, false}, "NULL": {packed, false}, "brand-new": {packed, false},
	} {
		_, evs, err := read(container(codec, tiny, c.block))
		var corrupt *CorruptError
		if c.ok && (err != nil || len(evs) != 1 || evs[0].ID != "a") {
			t.Errorf("%q: %v, %v", codec, evs, err)
		}
		if !c.ok && (!errors.As(err, &corrupt) || !strings.Contains(err.Error(), `"`+codec+`"`) ||
			!strings.Contains(err.Error(), "deflate")) {
			t.Errorf("%q: %v, want an error that names it, and what is supported", codec, err)
		}
	}
	without := bytes.Replace(container("null", tiny, block(marker, 1, "\x02a")), []byte("\x04\x14avro.codec\x08null"),
		[]byte("\x02"), 1)
	if _, evs, err := read(without); err != nil || len(evs) != 1 {
		t.Errorf("without a codec: %v, %v", evs, err)
	}
}

// The same index is another symbol in another version: 3 is BlobMetadataUpdated in version 1 only.
func TestEnumsAreReadByTheWritersSchema(t *testing.T) {
	for _, v := range versions {
		o := newOracle(t, schemaText(t, v))
		value := random(rand.New(rand.NewPCG(1, 2)), o.schema).(map[string]any)
		for name, want := range map[string]string{"BlobCreated": "BlobCreated", "Control": "Control",
			"third": map[bool]string{true: "BlobMetadataUpdated", false: "BlobPropertiesUpdated"}[v == "v1"]} {
			value["eventType"] = want
			b := o.encode(t, value)
			var ev Event
			if _, err := o.plan.Decode(string(b), &ev); err != nil || ev.EventType != want {
				t.Errorf("%s, %s: %q, %v", v, name, ev.EventType, err)
			}
		}
	}
	// By index, without another writer: the third symbol of each order.
	for symbols, want := range map[string]string{`"A","B","C","BlobMetadataUpdated","D"`: "BlobMetadataUpdated",
		`"A","B","C","BlobPropertiesUpdated"`: "BlobPropertiesUpdated"} {
		plan, err := CompilePlan(
			`{"type":"record","name":"E","fields":[{"name":"eventType","type":{"type":"enum","name":"T","symbols":[` +
				symbols + `]}}]}`,
		)
		if err != nil {
			t.Fatal(err)
		}
		var ev Event
		if _, err := plan.Decode("\x06", &ev); err != nil || ev.EventType != want {
			t.Errorf("%s: %q, %v", symbols, ev.EventType, err)
		}
		if _, err := plan.Decode("\x0a", &ev); err == nil {
			t.Errorf("%s: index 5 is %q", symbols, ev.EventType)
		}
	}
}

// What this program was not written for passes as it is, whatever version the record says it has.
func TestUnknownFieldsAndSymbolsPassThrough(t *testing.T) {
	enum := func(name, symbol string) string {
		return `{"name":"` + name + `","type":{"type":"enum","name":"` + name + `T","symbols":["Old","` + symbol +
			`"]}}`
	}
	schema := `{"type":"record","name":"E","fields":[{"name":"schemaVersion","type":"long"},` + enum("eventType",
		"BlobTeleported") + `,{"name":"region","type":"string"},` +
		`{"name":"data","type":{"type":"record","name":"D","fields":[` + enum("api", "TeleportBlob") + `,` +
		enum("blobTier", "Lukewarm") + `,` + enum("blobType", "CloudBlob") +
		`,{"name":"srcUrl","type":["null","string"]},{"name":"contentOffset","type":"long"},{"name":"flags","type":{"type":"map","values":"boolean"}},{"name":"none","type":["null","long"]}]}}]}`
	plan, err := CompilePlan(schema)
	if err != nil {
		t.Fatal(err)
	}
	var ev Event
	rest, err := plan.Decode(string(encode(99))+"\x02"+"\x04eu"+"\x02\x02\x02"+"\x02\x06a/b"+string(encode(-7))+
		"\x02\x02x\x01\x00"+"\x00", &ev)
	if err != nil || rest != "" {
		t.Fatalf("%q, %v", rest, err)
	}
	if ev.SchemaVersion != 99 || ev.EventType != "BlobTeleported" || ev.API != "TeleportBlob" ||
		ev.BlobTier != "Lukewarm" || ev.BlobType != "CloudBlob" {
		t.Errorf("%+v", ev)
	}
	want := []Pair{{"region", "eu"}, {"srcUrl", "a/b"}, {"contentOffset", "-7"}, {"flags", `{"x":true}`}}
	if len(ev.Extra) != len(want) {
		t.Fatalf("extra: %v", ev.Extra)
	}
	for i := range want {
		if ev.Extra[i] != want[i] {
			t.Errorf("extra: %v, want %v", ev.Extra[i], want[i])
		}
	}
}

// Texts are texts: what looks like an id, a number or nothing at all is not parsed.
func TestTextsAreNotParsed(t *testing.T) {
	for _, v := range versions {
		o := newOracle(t, schemaText(t, v))
		value := random(rand.New(rand.NewPCG(3, 4)), o.schema).(map[string]any)
		data := value["data"].(map[string]any)
		for _, text := range []string{"", "PowerShell upload #1", "{not-a-guid}", "00000000-0000-0000-0000-00000000000",
			"ünïcode\x00", strings.Repeat("x", 5000)} {
			for _, field := range []string{"clientRequestId", "requestId", "etag", "contentType", "sequencer", "url"} {
				data[field] = text
			}
			value["id"] = text
			var ev Event
			if _, err := o.plan.Decode(string(o.encode(t, value)), &ev); err != nil {
				t.Fatalf("%s: %q: %v", v, text, err)
			}
			for _, got := range []string{ev.ID, ev.ClientRequestID, ev.RequestID, ev.ETag, ev.ContentType, ev.Sequencer,
				ev.URL} {
				if got != text {
					t.Errorf("%s: %.40q becomes %.40q", v, text, got)
				}
			}
		}
	}
}
