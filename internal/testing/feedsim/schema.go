package feedsim

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"
)

// The schemas are those that real files hold, byte for byte.
//
//go:embed schemas/*.avsc
var schemas embed.FS

var syncMarker = []byte{0x0d, 0x07, 0x0f, 0x0c, 0x04, 0x04, 0x0c, 0x00, 0x01, 0x09, 0x01, 0x07, 0x0b, 0x0f, 0x0e, 0x09}

// version is a schema version of the feed: a chunk's header, and where each symbol stands in its enums.
type version struct {
	number int
	header []byte
	types  [changes]int64
	apis   [changes]int64
	tiers  []string // from 1; 0 is unspecified
}

func loadVersion(number int, deflate bool) (*version, error) {
	text, err := schemas.ReadFile(fmt.Sprintf("schemas/schema-v%d.avsc", number))
	if err != nil {
		return nil, fmt.Errorf("loading schema version %d: %w", number, err)
	}
	var schema any
	if err := json.Unmarshal(text, &schema); err != nil {
		return nil, fmt.Errorf("loading schema version %d: %w", number, err)
	}
	enums := map[string][]string{}
	collect(schema, enums)
	v := &version{number: number, header: header(text, deflate), tiers: enums["BlobTierEnum"]}
	for c := range changes {
		if of[c].since > number {
			continue
		}
		t, a := slices.Index(enums["EventTypeEnum"], v.eventType(c)), slices.Index(enums["ApiEnum"], of[c].api)
		if t < 0 || a < 0 {
			return nil, fmt.Errorf("loading schema version %d: it has no %s by %s", number, v.eventType(c), of[c].api)
		}
		v.types[c], v.apis[c] = int64(t), int64(a)
	}
	return v, nil
}

// eventType returns the name of a change's type in this version.
func (v *version) eventType(c change) string {
	if v.number == 1 && c == metadata {
		return "BlobMetadataUpdated"
	}
	return of[c].eventType
}

// tier returns an index that this version knows: version 6 has a tier more.
func (v *version) tier(t uint8) uint8 {
	if t == 0 || int(t) >= len(v.tiers) {
		return 1
	}
	return t
}

func header(schema []byte, deflate bool) []byte {
	codec := "null"
	if deflate {
		codec = "deflate"
	}
	h := append([]byte("Obj\x01"), 4) // a map of two
	for _, s := range []string{"avro.codec", codec, "avro.schema", string(schema)} {
		h = appendString(h, s)
	}
	return append(append(h, 0), syncMarker...)
}

// collect finds the enums in a schema.
func collect(s any, enums map[string][]string) {
	switch s := s.(type) {
	case []any:
		for _, e := range s {
			collect(e, enums)
		}
	case map[string]any:
		if s["type"] == "enum" {
			var symbols []string
			for _, x := range s["symbols"].([]any) {
				symbols = append(symbols, x.(string))
			}
			enums[s["name"].(string)] = symbols
		}
		for _, e := range s {
			collect(e, enums)
		}
	}
}
