package ocf

import (
	"bytes"
	"compress/flate"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"testing"
	"time"
)

// container builds a file.
func container(codec, schema string, blocks ...[]byte) []byte {
	b := append([]byte("Obj\x01\x04\x14avro.codec"), encode(int64(len(codec)))...)
	b = append(append(b, codec...), "\x16avro.schema"...)
	b = append(append(b, encode(int64(len(schema)))...), schema...)
	b = append(append(b, 0), marker...)
	return append(b, bytes.Join(blocks, nil)...)
}

var marker = bytes.Repeat([]byte{7}, syncSize)

func deflated(t testing.TB, data string) string {
	t.Helper()
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.DefaultCompression)
	if err == nil {
		_, err = w.Write([]byte(data))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestDeflate(t *testing.T) {
	good := deflated(t, "\x02a\x02b")
	_, evs, err := read(container("deflate", tiny, block(marker, 2, good), block(marker, 1, deflated(t, "\x02c"))))
	if err != nil || len(evs) != 3 || evs[0].ID != "a" || evs[1].ID != "b" || evs[2].ID != "c" {
		t.Fatalf("%v, %v", evs, err)
	}
	for name, data := range map[string]string{
		"cut": good[:len(good)-2], "no deflate": "\xff\xff\xff", "more behind it": good + "x", "empty": "",
	} {
		var corrupt *CorruptError
		if _, _, err := read(container("deflate", tiny, block(marker, 2, data))); !errors.As(err, &corrupt) ||
			errors.Is(err, ErrShort) {
			t.Errorf("%s: %v", name, err)
		}
	}
	bomb := container("deflate", tiny, block(marker, 1, deflated(t, strings.Repeat("a", 24<<20))))
	h, err := ParseHeader(bomb, Limits{Decompressed: 1 << 20})
	if err != nil {
		t.Fatal(err)
	}
	var corrupt *CorruptError
	grown := allocated(func() { _, err = h.ReadBlock(bomb[h.Size:], h.Size) })
	if !errors.As(err, &corrupt) || corrupt.Offset != h.Size || grown > 12<<20 {
		t.Errorf("bomb: %v, %d bytes", err, grown)
	}
}

func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Damage is called damage as soon as the bytes prove it, though the block is not whole yet.
func TestDamageInTornTail(t *testing.T) {
	for name, c := range map[string]struct {
		tail  []byte
		short bool
	}{
		"negative count alone":        {tail: encode(-1)},
		"count above the limit alone": {tail: encode(maxRecords + 1)},
		"negative size":               {tail: append(encode(1), encode(-1)...)},
		"size above the limit":        {tail: append(encode(1), encode(64<<20+1)...)},
		"count above the size":        {tail: append(encode(9), encode(8)...)},
		"wrong sync begins":           {tail: append(append(encode(1), encode(2)...), "\x02a\x07\x08"...)},
		"right sync begins":           {tail: append(append(encode(1), encode(2)...), "\x02a\x07\x07"...), short: true},
		"size at the limit":           {tail: append(encode(1), encode(64<<20)...), short: true},
		"nine bytes of a varint":      {tail: bytes.Repeat([]byte{0x80}, 9), short: true},
		"ten of a varint":             {tail: bytes.Repeat([]byte{0x80}, 10)},
	} {
		_, _, err := read(container("null", tiny, c.tail))
		var corrupt *CorruptError
		if c.short != errors.Is(err, ErrShort) || c.short == errors.As(err, &corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := container("null", tiny)
	if _, err := ParseHeader(long[:60], Limits{Header: 60}); err == nil || errors.Is(err, ErrShort) {
		t.Errorf("header above the limit: %v", err)
	}
}

// nested returns a type that unfolds to 2^n nulls, which take no bytes.
func nested(n int) string {
	s, last := `"null"`, `"null"`
	for i := range n {
		s = fmt.Sprintf(`{"type":"record","name":"R%d","fields":[{"name":"a","type":%s},{"name":"b","type":%s}]}`, i, s,
			last)
		last = fmt.Sprintf(`"R%d"`, i)
	}
	return s
}

// Values that take no bytes, and lies about counts, end soon and in little memory.
func TestNoBytesNoWork(t *testing.T) {
	const huge = "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" // count of 2^63-1
	wide := `{"type":"record","name":"W","fields":[` + strings.TrimSuffix(strings.Repeat(`{"name":"f","type":"null"},`,
		3000), ",") + `]}`
	field := func(name, typ string) string { return record(``, fmt.Sprintf(`{"name":%q,"type":%s}`, name, typ)) }
	for name, c := range map[string]struct{ schema, data string }{
		"nested records":          {field("x", nested(28)), ""},
		"nested records, ignored": {field("storageDiagnostics", nested(28)), ""},
		"array of nulls":          {field("x", `{"type":"array","items":"null"}`), huge},
		"array of nulls, ignored": {field("storageDiagnostics", `{"type":"array","items":"null"}`), huge},
		"array of wide records":   {field("x", `{"type":"array","items":`+wide+`}`), "\xfe\xff\x7f"},
		"record inside itself": {field("x",
			`{"type":"record","name":"R","fields":[{"name":"a","type":"R"},{"name":"b","type":"R"}]}`), ""},
		"lists of lists": {field("x",
			`{"type":"record","name":"R","fields":[{"name":"a","type":{"type":"array","items":"R"}}]}`),
			strings.Repeat("\x02", 1000)},
		"map": {field("previousInfo", `{"type":"map","values":"string"}`), huge + "\x02a\x02b"},
		"map of a negative count": {field("previousInfo", `{"type":"map","values":"string"}`),
			"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01\x00"},
		"map of a negative size": {field("previousInfo", `{"type":"map","values":"string"}`),
			"\x01\x01\x02a\x02b\x00"},
		"tags": {field("blobTagsUpdated",
			`{"type":"map","values":{"type":"map","values":"string"}}`), huge + "\x02a" + huge},
		"properties of no fields": {field("blobPropertiesUpdated",
			`{"type":"map","values":{"type":"record","name":"V","fields":[]}}`), huge + "\x02a"},
		"string":                   {field("url", `"string"`), huge},
		"negative string":          {field("url", `"string"`), "\x01"},
		"bytes":                    {field("x", `"bytes"`), huge},
		"fixed":                    {field("x", `{"type":"fixed","name":"F","size":9223372036854775807}`), "a"},
		"union":                    {field("url", `["null","string"]`), "\x04"},
		"negative branch":          {field("url", `["null","string"]`), "\x01"},
		"union of Extra":           {field("x", `["null","string"]`), "\x04"},
		"enum":                     {field("api", `{"type":"enum","name":"A","symbols":["a"]}`), "\x02"},
		"enum of no symbols":       {field("x", `{"type":"enum","name":"A","symbols":[]}`), "\x00"},
		"boolean":                  {field("x", `"boolean"`), "\x02"},
		"ignored pairs":            {field("storageDiagnostics", `{"type":"map","values":"string"}`), huge + "\x02a"},
		"overlong varint overflow": {field("contentLength", `"long"`), "\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02"},
	} {
		t.Run(name, func(t *testing.T) {
			plan, err := CompilePlan(c.schema)
			if err != nil {
				t.Fatal(err)
			}
			var ev Event
			begin := time.Now()
			grown := allocated(func() { _, err = plan.Decode(c.data, &ev) })
			if took := time.Since(begin); err == nil || grown > 16<<20 || took > 5*time.Second {
				t.Errorf("%v in %v and %d bytes", err, took, grown)
			}
		})
	}
}

func TestEmptyRecords(t *testing.T) {
	const empty = `{"type":"record","name":"E","fields":[{"name":"x","type":"null"}]}`
	if _, evs, err := read(container("null", empty, block(marker, 3, ""))); err != nil || len(evs) != 3 {
		t.Errorf("%d events, %v", len(evs), err)
	}
	var corrupt *CorruptError
	if _, _, err := read(container("null", empty, block(marker, 1<<40, ""))); !errors.As(err, &corrupt) {
		t.Errorf("many: %v", err)
	}
}

func TestHostileSchemas(t *testing.T) {
	for name, text := range map[string]string{
		"empty": "", "no JSON": "{", "number": "1", "null": "null", "no record": `"string"`, "no type": `{"name":"x"}`,
		"unknown type": `"x"`,
		"deep":         strings.Repeat(`{"type":"array","items":`, 5000) + `"int"` + strings.Repeat("}", 5000),
		"deep type":    strings.Repeat(`{"type":`, 5000) + `"int"` + strings.Repeat("}", 5000),
		"wide": `{"type":"record","name":"R","fields":[` + strings.Repeat(`{"name":"a","type":"int"},`,
			5000) + `{"name":"a","type":"int"}]}`,
		"nested union":   record(``, `{"name":"x","type":["null",["null","int"]]}`),
		"empty union":    record(``, `{"name":"x","type":[]}`),
		"negative fixed": record(``, `{"name":"x","type":{"type":"fixed","name":"F","size":-1}}`),
		"no items":       record(``, `{"name":"x","type":{"type":"array"}}`),
		"undefined":      record(``, `{"name":"x","type":"`+strings.Repeat("y", 100_000)+`"}`),
		"wrong fields":   `{"type":"record","name":"R","fields":1}`,
		"wrong symbols":  record(``, `{"name":"x","type":{"type":"enum","name":"A","symbols":[1]}}`),
	} {
		plan, err := CompilePlan(text)
		if err == nil || plan != nil || len(err.Error()) > 500 {
			t.Errorf("%s: %.500v", name, err)
		}
	}
}
