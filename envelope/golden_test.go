package envelope

import (
	"bytes"
	"fmt"
	"os"
	"strings"
	"testing"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

func golden(t *testing.T, file string, got []byte) {
	t.Helper()
	if *update {
		if err := os.WriteFile(file, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Errorf("%s differs from what is written now; go test -update shows how", file)
	}
}

// Our row in every envelope: a create, a change of properties, one of the tier, a deletion, a marker.
func TestGoldenEnvelopes(t *testing.T) {
	events := made()
	events = []ocf.Event{events[0], events[3], events[4], events[1]}
	var b bytes.Buffer
	for _, f := range forms() {
		e := encoder(t, f.o)
		fmt.Fprintf(&b, "%s\n", f.name)
		var r Record
		for i := range events {
			if _, emit, err := e.Append(nil, &r, &events[i], source.Position{Segment: segment("2025/10/05/0600"),
				Offset: 1488, Index: i}); err != nil || !emit {
				t.Fatal(emit, err)
			}
			fmt.Fprintf(&b, "  %s -> %s", show(r.Key), show(r.Value))
			if r.Tombstone {
				b.WriteString(", then null")
			}
			b.WriteByte('\n')
		}
		m := e.Resolved(Timestamp{Wall: 1759644000000000000})
		fmt.Fprintf(&b, "  %s -> %s\n", show(m.Key), show(m.Value))
	}
	golden(t, "testdata/envelopes.golden", b.Bytes())
}

// show returns a key or a value as text: Avro in hexadecimal digits.
func show(v []byte) string {
	switch {
	case v == nil:
		return "null"
	case len(v) > 0 && v[0] == 0:
		return fmt.Sprintf("%x", v)
	}
	quoted := fmt.Sprintf("%q", v)
	return strings.ReplaceAll(quoted[1:len(quoted)-1], `\"`, `"`)
}

// Schemas are a contract: a registry keeps them, and a change of the text may make a new version of each.
func TestGoldenSchemas(t *testing.T) {
	var b bytes.Buffer
	for _, f := range forms() {
		f.o.Register = nil
		subjects, err := Schemas(f.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range subjects {
			parsed(t, s.Schema)
			fmt.Fprintf(&b, "%s\n  %s\n  %s\n", f.name, s.Name, s.Schema)
		}
	}
	golden(t, "testdata/schemas.golden", b.Bytes())
}
