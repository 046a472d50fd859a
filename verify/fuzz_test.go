package verify_test

import (
	"encoding/json"
	"strings"
	"testing"

	"blobfeed/internal/testing/ceiling"
	"blobfeed/verify"
)

// FuzzAvro: whatever a registry gives as a schema, and whatever a value of it is, verify reads it as JSON or not at all,
// in little memory and time.
func FuzzAvro(f *testing.F) {
	const field = `{"type":"record","name":"r","fields":[{"name":"f","type":`
	for schema, value := range map[string]string{
		`"string"`:          "\x02a",
		field + `"null"}]}`: "",
		field + `["null",{"type":"map","values":"string"}]}]}`:                "\x02\x02\x02a\x02b\x00",
		field + `{"type":"array","items":"null"}}]}`:                          "\xfe\xff\xff\xff\x0f\x00",
		field + `{"type":"array","items":{"type":"array","items":"null"}}}]}`: "\x80\x80\x04",
		field + `"r"}]}`:                          "",
		field + `["null","r"]}]}`:                 strings.Repeat("\x02", 500),
		field + `{"type":"array","items":"r"}}]}`: strings.Repeat("\x02", 500),
		field + `{"type":"enum","name":"e","symbols":["` + strings.Repeat("x", 900) + `"]}}]}`: "\x00",
		field + `{"type":"long","logicalType":"timestamp-micros"}}]}`:                          "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01",
		field + `"bytes"}]}`: "\x08\x00\x01\x02\xff",
		strings.Repeat(`{"type":`, 300) + `"int"` + strings.Repeat(`}`, 300): "\x02",
		strings.Repeat(`[`, 300) + strings.Repeat(`]`, 300):                  "\x02",
	} {
		f.Add(schema, []byte(value))
	}
	f.Fuzz(func(t *testing.T, schema string, value []byte) {
		ceiling.Hold(t, 64<<20+100*uint64(len(schema)+len(value)), func() {
			a := verify.NewAvro(func(int) (string, error) { return schema, nil })
			for range 2 { // the schema is compiled once
				text := a.JSON(append([]byte{0, 0, 0, 0, 1}, value...))
				if text != nil && !json.Valid(text) {
					t.Errorf("%.1000q is no JSON", text)
				}
			}
		})
	})
}
