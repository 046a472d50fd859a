package ocf

import (
	"errors"
	"fmt"
	"strings"
	"testing"
)

// What a few kilobytes of a chunk unfold to: entries, events and texts that take next to no bytes of it. Each is
// damage, and found before it takes more memory than the limits give.
func TestCeiling(t *testing.T) {
	const huge = "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01" // count of 2^63-1
	limits := Limits{Block: 4 << 20, Decompressed: 4 << 20}
	field := func(name, typ string) string { return record(``, fmt.Sprintf(`{"name":%q,"type":%s}`, name, typ)) }
	long := strings.Repeat("s", 30_000)
	var wide strings.Builder
	for i := range 1000 {
		fmt.Fprintf(&wide, `{"name":"%032d","type":"string"},`, i)
	}
	for name, c := range map[string]struct {
		schema string
		count  int64
		data   string
	}{
		"pairs": {field("previousInfo", `{"type":"map","values":"string"}`), 1, huge + strings.Repeat("\x00",
			4_000_000)},
		"properties": {field("blobPropertiesUpdated",
			`{"type":"map","values":{"type":"record","name":"V","fields":[]}}`), 1, huge + strings.Repeat("\x00",
			4_000_000)},
		"tags": {field("blobTagsUpdated", `{"type":"map","values":{"type":"map","values":"string"}}`), 1, huge +
			strings.Repeat("\x00", 4_000_000)},
		"tags of one set": {field("blobTagsUpdated", `{"type":"map","values":{"type":"map","values":"string"}}`), 1,
			"\x02\x00" + huge + strings.Repeat("\x00", 4_000_000)},
		"unknown map": {field("x", `{"type":"map","values":"string"}`), 1, huge + strings.Repeat("\x00", 4_000_000)},
		"events":      {tiny, 262_144, strings.Repeat("\x00", 262_144)},
		"symbols": {field("api", fmt.Sprintf(`{"type":"enum","name":"A","symbols":[%q]}`, long)), 9000,
			strings.Repeat("\x00", 9000)},
		"unknown symbols": {field("x", fmt.Sprintf(`{"type":"enum","name":"A","symbols":[%q]}`, long)), 9000,
			strings.Repeat("\x00", 9000)},
		"unknown fields": {record(``, strings.TrimSuffix(wide.String(), ",")), 9000, strings.Repeat("\x00",
			9_000_000)[:4_000_000]},
		"long names": {field(long, `"string"`), 9000, strings.Repeat("\x00", 9000)},
	} {
		file := container("deflate", c.schema, block(marker, c.count, deflated(t, c.data)))
		if len(file) > 64<<10 {
			t.Fatalf("%s: %d bytes", name, len(file))
		}
		h, err := ParseHeader(file, limits)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		grown := allocated(func() {
			var b Block
			if b, err = h.ReadBlock(file[h.Size:], h.Size); err == nil {
				_, err = h.Events(b, nil)
			}
		})
		var corrupt *CorruptError
		// of all that was allocated, freed or not
		if !errors.As(err, &corrupt) || !errors.Is(err, errBudget) || len(err.Error()) > 500 || grown > 48<<20 {
			t.Errorf("%s: %.500v; %d bytes of file, %d of memory", name, err, len(file), grown)
		}
		t.Logf("%s: %d bytes of file, %d of memory", name, len(file), grown)
	}
}

// An event that was unusually large once does not stay so.
func TestLargeEventsAreNotKept(t *testing.T) {
	plan, err := CompilePlan(record(``, `{"name":"previousInfo","type":{"type":"map","values":"string"}},`+
		`{"name":"blobTagsUpdated","type":{"type":"map","values":{"type":"map","values":"string"}}}`))
	if err != nil {
		t.Fatal(err)
	}
	many := string(encode(1000)) + strings.Repeat("\x02a\x02b", 1000) + "\x00"
	var ev Event
	for _, data := range []string{many + "\x02\x02a" + many + "\x00", "\x00\x00"} {
		if _, err := plan.Decode(data, &ev); err != nil {
			t.Fatal(err)
		}
	}
	ev.reset()
	if n := cap(ev.PreviousInfo); n > maxKept {
		t.Errorf("an event keeps %d pairs", n)
	}
	for _, set := range ev.BlobTagsUpdated[:cap(ev.BlobTagsUpdated)] {
		if cap(set.Tags) > maxKept {
			t.Errorf("an event keeps %d tags", cap(set.Tags))
		}
	}
}
