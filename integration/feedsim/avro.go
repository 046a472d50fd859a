package feedsim

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
)

//go:embed schemas/*.avsc
var schemas embed.FS

var syncMarker = []byte{0x0d, 0x07, 0x0f, 0x0c, 0x04, 0x04, 0x0c, 0x00, 0x01, 0x09, 0x01, 0x07, 0x0b, 0x0f, 0x0e, 0x09}

// version is a schema version of the feed: its header, and where each symbol stands in its enums.
type version struct {
	number int
	header []byte
	enums  map[string][]string
}

func loadVersion(number int) (*version, error) {
	text, err := schemas.ReadFile(fmt.Sprintf("schemas/schema-v%d.avsc", number))
	if err != nil {
		return nil, fmt.Errorf("schema version %d: %w", number, err)
	}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, fmt.Errorf("schema version %d: %w", number, err)
	}
	v := &version{number: number, enums: map[string][]string{}}
	v.collect(schema)
	h := append([]byte("Obj\x01"), 4) // a map of two
	for _, s := range []string{"avro.codec", "null", "avro.schema", string(text)} {
		h = appendString(h, s)
	}
	v.header = append(append(h, 0), syncMarker...)
	return v, nil
}

// collect finds the enums in a schema.
func (v *version) collect(s any) {
	switch s := s.(type) {
	case []any:
		for _, e := range s {
			v.collect(e)
		}
	case map[string]any:
		if s["type"] == "enum" {
			var symbols []string
			for _, x := range s["symbols"].([]any) {
				symbols = append(symbols, x.(string))
			}
			v.enums[s["name"].(string)] = symbols
		}
		for _, e := range s {
			v.collect(e)
		}
	}
}

func (v *version) has(enum, symbol string) bool { return slices.Contains(v.enums[enum], symbol) }

func (v *version) enum(b []byte, name, symbol string) []byte {
	return appendLong(b, int64(max(0, slices.Index(v.enums[name], symbol))))
}

func appendLong(b []byte, v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63)
	for ; u >= 0x80; u >>= 7 {
		b = append(b, byte(u)|0x80)
	}
	return append(b, byte(u))
}

// appendLong10 writes the ten bytes that the service always writes for a block's count and size.
func appendLong10(b []byte, v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63)
	for range 9 {
		b = append(b, byte(u)|0x80)
		u >>= 7
	}
	return append(b, byte(u))
}

func appendString(b []byte, s string) []byte { return append(appendLong(b, int64(len(s))), s...) }

func appendNullable(b []byte, s string) []byte {
	if s == "" {
		return append(b, 0)
	}
	return appendString(append(b, 2), s)
}

// append writes an event as a record of this version.
func (v *version) append(b []byte, e *event) []byte {
	b = appendLong(b, int64(v.number))
	b = appendString(b, e.topic)
	b = appendString(b, e.subject)
	b = v.enum(b, "EventTypeEnum", e.EventType)
	b = appendString(b, e.EventTime)
	b = appendString(b, e.ID)
	b = v.enum(b, "ApiEnum", e.API)
	b = appendString(b, "")
	b = appendString(b, e.ID)
	b = appendString(b, e.etag)
	b = appendString(b, "application/octet-stream")
	b = appendLong(b, e.length)
	b = v.enum(b, "BlobTypeEnum", "BlockBlob")
	if v.number >= 4 {
		b = append(b, 0)                          // blobVersion
		b = appendNullable(b, "01D8FF7A1B2C3D4E") // containerVersion
		b = append(b, 0)                          // blobTier
		b = appendString(b, e.url)                // url
		b = appendString(b, e.Sequencer)          // sequencer
		b = append(b, 0)                          // previousInfo
		b = appendNullable(b, e.Snapshot)         // snapshot
		b = e.appendProperties(b)                 // blobPropertiesUpdated
		b = append(b, 0)                          // asyncOperationInfo
		if v.number >= 5 {
			b = append(b, 0, 0) // blobTagsUpdated, restorePointMarker
		}
	} else {
		b = appendString(b, "")
		b = appendString(b, e.Sequencer)
	}
	b = appendLong(b, 2) // storageDiagnostics
	for _, s := range []string{"bid", e.ID, "seq", "(1,2,3,4)"} {
		b = appendString(b, s)
	}
	return append(b, 0)
}

func (e *event) appendProperties(b []byte) []byte {
	if e.EventType != "BlobPropertiesUpdated" {
		return append(b, 0)
	}
	b = appendLong(append(b, 2), 1)
	for _, s := range []string{"ContentType", "application/octet-stream", "text/plain"} {
		b = appendString(b, s)
	}
	return append(b, 0)
}
