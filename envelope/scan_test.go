package envelope

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/source/ocf"
)

// listed is what a listing says of a blob.
var listed = ocf.Event{
	Subject: subjectPrefix + "photos/blobs/a b.jpg", URL: "https://simacct.blob.core.windows.net/photos/a%20b.jpg",
	EventTime: "2019-03-01T12:00:00Z", ETag: "0x8D", ContentType: "image/jpeg",
	ContentLength: 5, HasContentLength: true, BlobType: "BlockBlob", BlobTier: "Cool", BlobVersion: "2019-03-01T12:00:00.0000001Z",
}

// aScan lists after the feed was resolved up to 06:00.
var aScan = Scan{ID: "s1", Updated: Timestamp{Wall: 1759644000000000000},
	Served: time.Date(2025, 10, 5, 6, 7, 8, 0, time.UTC)}

// scanned returns the row of a blob, and the deletion of one that a sweep missed.
func scanned(t testing.TB, e *Encoder) (rows [2]Record) {
	t.Helper()
	ev, gone := listed, ocf.Event{Subject: listed.Subject}
	if _, err := e.AppendRow(nil, &rows[0], &ev, &aScan); err != nil {
		t.Fatal(err)
	}
	if _, err := e.AppendGone(nil, &rows[1], &gone, &aScan); err != nil {
		t.Fatal(err)
	}
	return rows
}

// A row of a scan, and a deletion that a sweep found, in every envelope.
func TestGoldenScan(t *testing.T) {
	all := forms()
	bare := all[0]
	bare.name, bare.o.Headers = bare.name+", no headers", HeadersNone
	var b bytes.Buffer
	for _, f := range append(all, bare) {
		fmt.Fprintf(&b, "%s\n", f.name)
		for _, r := range scanned(t, encoder(t, f.o)) {
			fmt.Fprintf(&b, "  %d %s -> %s", r.Millis, show(r.Key), show(r.Value))
			if r.Tombstone {
				b.WriteString(", then null")
			}
			b.WriteByte('\n')
			for _, h := range r.Headers {
				fmt.Fprintf(&b, "    %s: %s\n", h.Key, h.Value)
			}
		}
	}
	golden(t, "testdata/scan.golden", b.Bytes())
}

// A row says when the blob was written and up to where the scan holds; what only events have is null.
func TestAppendRow(t *testing.T) {
	o := Defaults(JSON, Enriched)
	o.MVCCTimestamp, o.Account = true, "acct"
	var v struct {
		After, Source map[string]any
		Before        any
		Op            string
	}
	r := scanned(t, encoder(t, o))[0]
	if err := json.Unmarshal(r.Value, &v); err != nil {
		t.Fatal(err)
	}
	if v.Op != "r" || v.Before != nil || r.Kind != Upsert || r.Millis != aScan.Served.UnixMilli() ||
		r.Updated != aScan.Updated {
		t.Errorf("%s at %d: %+v", r.Updated, r.Millis, v)
	}
	for name, want := range map[string]any{
		"account": "acct", "blob": "a b.jpg", "blob_tier": "Cool", "blob_type": "BlockBlob", "content_length": 5.0,
		"blob_version": "2019-03-01T12:00:00.0000001Z", "container": "photos", "content_type": "image/jpeg",
		"etag": "0x8D", "path": "photos/a b.jpg", "url": listed.URL,
	} {
		if v.After[name] != want {
			t.Errorf("%s is %v, want %v", name, v.After[name], want)
		}
		delete(v.After, name)
	}
	for name, got := range v.After {
		if got != nil {
			t.Errorf("%s is %v, which no listing says", name, got)
		}
	}
	for name, want := range map[string]any{
		"ts_hlc": "1759644000000000000.0000000000", "ts_ms": 1759644000000.0,
		"mvcc_timestamp": "1551441600000000000.0000000000", "position": nil, "sequencer": nil, "event_id": nil,
		"origin": "azure_blob_listing",
	} {
		if got, ok := v.Source[name]; !ok || got != want {
			t.Errorf("source.%s is %v, want %v", name, got, want)
		}
	}
}

// Consumers recognize rows of a scan by the header, whatever the mode; they are no CloudEvents.
func TestScanHeaders(t *testing.T) {
	extra := Header{"team", []byte("storage")}
	for m, want := range map[HeaderMode]string{HeadersNone: "team=storage scan=s1",
		HeadersCloudEvents: "team=storage updated=1759644000000000000.0000000000 scan=s1"} {
		for _, r := range scanned(t, encoder(t, Options{Headers: m, ExtraHeaders: []Header{extra}})) {
			var got []string
			for _, h := range r.Headers {
				got = append(got, h.Key+"="+string(h.Value))
			}
			if strings.Join(got, " ") != want {
				t.Errorf("%s: %s, want %s", m, got, want)
			}
		}
	}
}

// A deletion from a sweep has the form of an event's, with the key as all that is known.
func TestAppendGone(t *testing.T) {
	for d, want := range map[Deletes]string{
		DeletesEnvelope: `{"after": null, "before": null} false false`, DeletesTombstone: ` true false`,
		DeletesBoth: `{"after": null, "before": null} false true`, DeletesEmpty: ` false false`,
	} {
		r := scanned(t, encoder(t, Options{Deletes: d, Diff: true}))[1]
		if got := fmt.Sprintf("%s %v %v", r.Value, r.Value == nil, r.Tombstone); got != want || r.Kind != Delete {
			t.Errorf("%s: %s, want %s", d, got, want)
		}
	}
	r := scanned(t, encoder(t, Options{Envelope: Enriched, Diff: true}))[1]
	if !bytes.Contains(r.Value, []byte(`"op": "d"`)) || !bytes.Contains(r.Value, []byte(`"blob_type": null`)) {
		t.Errorf("%s", r.Value)
	}
}

func TestBadRows(t *testing.T) {
	for want, change := range map[string]func(*ocf.Event){
		"does not name a blob":     func(ev *ocf.Event) { ev.Subject = "/other/a" },
		"names a container":        func(ev *ocf.Event) { ev.Subject = subjectPrefix + "photos" },
		"at most 1,024 characters": func(ev *ocf.Event) { ev.Subject += strings.Repeat("x", maxSubject) },
		`"yesterday"`:              func(ev *ocf.Event) { ev.EventTime = "yesterday" },
	} {
		ev := listed
		change(&ev)
		buf := []byte("before")
		out, err := encoder(t, Options{}).AppendRow(buf, new(Record), &ev, &aScan)
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), ev.Subject[:8]) ||
			string(out) != "before" {
			t.Errorf("%v, want %s", err, want)
		}
		if want[0] == '"' {
			continue // of a key without a blob there is no such time
		}
		if _, err := encoder(t, Options{}).AppendGone(nil, new(Record), &ev, &aScan); err == nil ||
			!strings.Contains(err.Error(), want) {
			t.Errorf("a deletion: %v, want %s", err, want)
		}
	}
}

// A record of the feed is the same after one of a scan: nothing of the row is left.
func TestEventAfterRow(t *testing.T) {
	for _, f := range forms() {
		e := encoder(t, f.o)
		for _, ev := range made()[:2] {
			clean, used := appended(t, e, &ev, somewhere), new(Record)
			if _, err := e.AppendRow(nil, used, &listed, &aScan); err != nil {
				t.Fatal(err)
			}
			if _, _, err := e.Append(nil, used, &ev, somewhere); err != nil {
				t.Fatal(err)
			}
			if !bytes.Equal(clean.Value, used.Value) || len(clean.Headers) != len(used.Headers) {
				t.Errorf("%s: %s, want %s", f.name, used.Value, clean.Value)
			}
		}
	}
}

// Rows are chosen by path and type, like events; what only events have does not count.
func TestMatchRow(t *testing.T) {
	for name, c := range map[string]struct {
		f    Filter
		want bool
	}{
		"nothing said":       {Filter{}, true},
		"container":          {Filter{Containers: []string{"photos"}}, true},
		"other container":    {Filter{Containers: []string{"photo"}}, false},
		"excluded container": {Filter{ExcludeContainers: []string{"photos"}}, false},
		"prefix":             {Filter{Prefixes: []string{"photos/a"}}, true},
		"other prefix":       {Filter{Prefixes: []string{"photos/b"}}, false},
		"excluded prefix":    {Filter{ExcludePrefixes: []string{"photos/a"}}, false},
		"suffix":             {Filter{Suffixes: []string{".jpg"}}, true},
		"excluded suffix":    {Filter{ExcludeSuffixes: []string{".jpg"}}, false},
		"blob type":          {Filter{BlobTypes: []string{"BlockBlob"}}, true},
		"other blob type":    {Filter{BlobTypes: []string{"PageBlob"}}, false},
		"event type":         {Filter{EventTypes: []string{"BlobDeleted"}}, true},
		"time":               {Filter{From: Timestamp{Wall: 1 << 62}}, true},
	} {
		if got := c.f.MatchRow(&listed); got != c.want {
			t.Errorf("%s: %v", name, got)
		}
	}
}

func TestRowsDoNotAllocate(t *testing.T) {
	for _, f := range forms() {
		e := encoder(t, f.o)
		ev, buf, r := listed, make([]byte, 0, 1<<16), Record{Headers: make([]Header, 0, 16)}
		if n := testing.AllocsPerRun(5, func() { _, _ = e.AppendRow(buf, &r, &ev, &aScan) }); n > 0 {
			t.Errorf("%s: %v allocations for a row", f.name, n)
		}
		if n := testing.AllocsPerRun(5, func() { _, _ = e.AppendGone(buf, &r, &ev, &aScan) }); n > 0 {
			t.Errorf("%s: %v allocations for a deletion", f.name, n)
		}
	}
}

func BenchmarkRows(b *testing.B) {
	page := slices.Repeat([]ocf.Event{listed}, 5000)
	for i := range page {
		page[i].Subject = fmt.Sprintf("%sphotos/blobs/2026/01/%08d.jpg", subjectPrefix, i)
	}
	for _, f := range forms() {
		b.Run(f.name, func(b *testing.B) {
			enc := encoder(b, f.o)
			var buf []byte
			r := Record{Headers: make([]Header, 0, 16)}
			b.ReportAllocs()
			for b.Loop() {
				buf = buf[:0]
				for i := range page {
					var err error
					if buf, err = enc.AppendRow(buf, &r, &page[i], &aScan); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.N*len(page))/b.Elapsed().Seconds(), "rows/s")
		})
	}
}
