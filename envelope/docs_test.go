package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

// The examples in docs/events.md are what the encoder writes.
func TestDocs(t *testing.T) {
	const file = "../docs/events.md"
	doc, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	sections := map[string]func(*testing.T) string{
		"record": docRecord, "types": docTypes, "columns": docColumns, "envelopes": docEnvelopes,
		"table": func(*testing.T) string { return optionTable() }, "scan": docScan,
	}
	found := 0
	section := regexp.MustCompile(`(?s)<!-- generated: (\w+) -->\n.*?<!-- end -->`)
	out := section.ReplaceAllFunc(doc, func(old []byte) []byte {
		name := string(section.FindSubmatch(old)[1])
		if sections[name] == nil {
			t.Fatalf("section %s is unknown", name)
		}
		found++
		return fmt.Appendf(nil, "<!-- generated: %s -->\n%s<!-- end -->", name, sections[name](t))
	})
	if found != len(sections) {
		t.Errorf("%d sections of %d are there", found, len(sections))
	}
	if *update {
		if err := os.WriteFile(file, out, 0o644); err != nil {
			t.Fatal(err)
		}
	} else if !bytes.Equal(doc, out) {
		t.Errorf("%s is not what the program writes; go test ./envelope -update", file)
	}
}

// example returns the first event of a kind from the real feed, or a made one.
func example(t *testing.T, eventType, api string) *ocf.Event {
	t.Helper()
	for _, events := range [][]ocf.Event{realEvents(t), made(), rare()} {
		for i := range events {
			if ev := &events[i]; ev.EventType == eventType && ev.API == api {
				return ev
			}
		}
	}
	t.Fatalf("no event %s by %s", eventType, api)
	return nil
}

// rare are events of the documented types that are neither in the real feed nor needed elsewhere.
func rare() []ocf.Event {
	restore := made()[0]
	restore.EventType, restore.API = "RestorePointMarkerCreated", "CreateRestorePointMarker"
	restore.RestorePointMarker = []ocf.Pair{{Name: "rpi", Value: "cbd73e3d-f650-4700-b90c-2f067bce639c"},
		{Name: "rpp", Value: "cbd73e3d-f650-4700-b90c-2f067bce639c"}, {Name: "rpl", Value: "label"},
		{Name: "rpt", Value: "2025-10-05T06:07:08.0000001Z"}}
	return []ocf.Event{restore}
}

func appended(t *testing.T, e *Encoder, ev *ocf.Event, pos source.Position) *Record {
	t.Helper()
	var r Record
	if _, emit, err := e.Append(nil, &r, ev, pos); err != nil || !emit {
		t.Fatal(emit, err)
	}
	return &r
}

// somewhere is no place in the test data.
var somewhere = source.Position{Segment: segment("2020/05/27/1500"), Offset: 1488, Index: 3}

func docRecord(t *testing.T) string {
	// It is there: the manual's test has it printed by this position.
	pos := source.Position{Segment: segment("2020/05/29/1600"), Offset: 2434, Index: 8}
	ev := example(t, "BlobPropertiesUpdated", "SetBlobMetadata")
	return docLines(appended(t, encoder(t, Defaults(JSON, Wrapped)), ev, pos))
}

func docScan(t *testing.T) string {
	o := Defaults(JSON, Wrapped)
	o.Account, o.MVCCTimestamp = "simacct", true
	row := scanned(t, encoder(t, o))[0]
	row.Value = withoutNulls(row.Value)
	return docLines(&row)
}

func docLines(r *Record) string {
	var b strings.Builder
	fmt.Fprintf(&b, "```\nkey      %s\nvalue    %s\n", r.Key, r.Value)
	for _, h := range r.Headers {
		fmt.Fprintf(&b, "header   %s: %s\n", h.Key, h.Value)
	}
	return b.String() + "```\n"
}

var nullColumn = regexp.MustCompile(`"\w+": null, |, "\w+": null(})`)

func withoutNulls(value []byte) []byte {
	for nullColumn.Match(value) {
		value = nullColumn.ReplaceAll(value, []byte("$1"))
	}
	return value
}

// docTypes shows the columns of events that the event of docRecord does not have.
func docTypes(t *testing.T) string {
	o := Defaults(JSON, Wrapped)
	o.Events = EventsAll
	e := encoder(t, o)
	columns := func(eventType, api string) map[string]json.RawMessage {
		var value struct{ After map[string]json.RawMessage }
		text := appended(t, e, example(t, eventType, api), somewhere).Value
		if err := json.Unmarshal(withoutNulls(text), &value); err != nil {
			t.Fatal(err)
		}
		return value.After
	}
	common := columns("BlobPropertiesUpdated", "SetBlobMetadata")
	var b strings.Builder
	b.WriteString("```\n")
	for _, c := range [][2]string{
		{"BlobSnapshotCreated", "SnapshotBlob"}, {"BlobPropertiesUpdated", "SetBlobTags"}, {"BlobTierChanged", "SetBlobTier"},
		{"BlobAsyncOperationInitiated", "SetBlobTier"}, {"RestorePointMarkerCreated", "CreateRestorePointMarker"},
	} {
		row := columns(c[0], c[1])
		var shown []string
		for _, name := range slices.Sorted(maps.Keys(row)) {
			if common[name] == nil {
				shown = append(shown, fmt.Sprintf("%q: %s", name, row[name]))
			}
		}
		fmt.Fprintf(&b, "# %s, %s\n%s\n", c[0], c[1], strings.Join(shown, ", "))
	}
	return b.String() + "```\n"
}

func docColumns(*testing.T) string {
	var types []string
	of := map[string][]string{}
	for _, c := range blobs("t", Micros).columns {
		schema := strings.Trim(c.schema(names{}), `"`)
		if of[schema] == nil {
			types = append(types, schema)
		}
		of[schema] = append(of[schema], c.name)
	}
	var b strings.Builder
	for _, schema := range types {
		fmt.Fprintf(&b, "- `%s`: `%s`\n", schema, strings.Join(of[schema], "`, `"))
	}
	return b.String()
}

// shortRow cuts what is between the first column of a row and its end.
var shortRow = regexp.MustCompile(`("account": ("[^"]*"|null), )"api": .*?"url": (null|"[^"]*")}`)

var sourceField = regexp.MustCompile(`"source": {.*?}`)

func docEnvelopes(t *testing.T) string {
	var b strings.Builder
	for env := range Enriched + 1 {
		o := Defaults(JSON, env)
		o.Markers = MarkersInline
		o.Now = func() int64 { return 1759644429000000000 }
		e := encoder(t, o)
		fmt.Fprintf(&b, "`envelope=%s`\n```\n", env)
		show := func(key, value []byte) {
			text := string(shortRow.ReplaceAll(value, []byte("$1…}")))
			if strings.Contains(b.String(), `"source": {"account"`) {
				text = sourceField.ReplaceAllString(text, `"source": {…}`) // the record before shows it
			}
			switch {
			case value == nil:
				text = "null"
			case len(value) == 0:
				text = "(no bytes)"
			}
			if key == nil {
				key = []byte("null")
			}
			fmt.Fprintf(&b, "%-18s  %s\n", key, text)
		}
		for _, i := range []int{0, 1} {
			r := appended(t, e, &made()[i], somewhere)
			show(r.Key, r.Value)
		}
		show(nil, e.Resolved(Timestamp{Wall: 1759644000000000000}).Value)
		b.WriteString("```\n")
	}
	return b.String()
}
