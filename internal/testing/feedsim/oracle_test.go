package feedsim

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path"
	"strings"
	"testing"

	"github.com/hamba/avro/v2"
)

// found is an event as another reader decodes it, with the place of its block as the bytes have it.
type found struct {
	Position string
	Record   map[string]any
	Data     map[string]any
}

// chunkNames returns the chunks below root, in order.
func chunkNames(t *testing.T, root string) []string {
	t.Helper()
	names, err := fs.Glob(os.DirFS(root), "log/*/*/*/*/*/*.avro")
	if err != nil {
		t.Fatal(err)
	}
	return names
}

// container is the header of an Avro file, as the Avro specification has it.
var container = avro.MustParse(`{"type":"record","name":"org.apache.avro.file.Header","fields":[
	{"name":"magic","type":{"type":"fixed","name":"Magic","size":4}},
	{"name":"meta","type":{"type":"map","values":"bytes"}},
	{"name":"sync","type":{"type":"fixed","name":"Sync","size":16}}]}`)

// readChunk walks the blocks of a chunk and decodes header and records with hamba.
func readChunk(t *testing.T, root, name string) []found {
	t.Helper()
	data, err := os.ReadFile(path.Join(root, name))
	if err != nil {
		t.Fatal(err)
	}
	var header struct {
		Magic [4]byte           `avro:"magic"`
		Meta  map[string][]byte `avro:"meta"`
		Sync  [16]byte          `avro:"sync"`
	}
	if err := avro.Unmarshal(container, data, &header); err != nil || string(header.Magic[:]) != "Obj\x01" ||
		!bytes.Equal(header.Sync[:], syncMarker) {
		t.Fatalf("%s: header %q: %v", name, header.Magic, err)
	}
	schema, err := avro.Parse(string(header.Meta["avro.schema"]))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	f := strings.Split(name, "/") // log/SS/YYYY/MM/DD/HHMM/NNNNN.avro
	place := path.Join(f[2], f[3], f[4], f[5], f[1], strings.TrimSuffix(f[6], ".avro"))
	var events []found
	at := bytes.Index(data, syncMarker) + len(syncMarker)
	for at < len(data) {
		count, n1 := binary.Varint(data[at:])
		size, n2 := binary.Varint(data[at+n1:])
		if n1 != 10 || n2 != 10 || count < 1 {
			t.Fatalf("%s, block at %d: %d events, varints of %d and %d bytes; real ones have 10", name, at, count, n1,
				n2)
		}
		block := data[at+n1+n2:][:size]
		if string(header.Meta["avro.codec"]) == "deflate" {
			if block, err = io.ReadAll(flate.NewReader(bytes.NewReader(block))); err != nil {
				t.Fatalf("%s, block at %d: %v", name, at, err)
			}
		}
		r := avro.NewReader(nil, 0).Reset(block)
		for i := range count {
			var v any
			r.ReadVal(schema, &v)
			if r.Error != nil {
				t.Fatalf("%s, block at %d, event %d: %v", name, at, i, r.Error)
			}
			record := v.(map[string]any)
			events = append(events, found{fmt.Sprintf("%s/%d/%d", place, at, i), record,
				record["data"].(map[string]any)})
		}
		if r.Peek(); r.Error == nil {
			t.Fatalf("%s, block at %d: bytes after the last event", name, at)
		}
		at += n1 + n2 + int(size) + len(syncMarker)
		if !bytes.Equal(data[at-len(syncMarker):at], syncMarker) {
			t.Fatalf("%s: no sync marker before %d", name, at)
		}
	}
	return events
}

// checkFeed compares a feed with what was announced, event by event.
func checkFeed(t *testing.T, root string, want []Expected) {
	t.Helper()
	byPosition := map[string]*Expected{}
	for i := range want {
		byPosition[want[i].Position()] = &want[i]
	}
	if len(byPosition) != len(want) {
		t.Fatalf("%d events at %d positions", len(want), len(byPosition))
	}
	got := 0
	for _, name := range chunkNames(t, root) {
		for _, e := range readChunk(t, root, name) {
			got++
			w := byPosition[e.Position]
			if w == nil {
				t.Fatalf("%s: an event that was not announced: %v", e.Position, e.Record)
			}
			checkEvent(t, w, &e)
		}
	}
	if got != len(want) {
		t.Errorf("found %d events, announced %d", got, len(want))
	}
}

func checkEvent(t *testing.T, w *Expected, e *found) {
	t.Helper()
	snapshot, ok := e.Data["snapshot"].(string)
	if m, union := e.Data["snapshot"].(map[string]any); !ok && union {
		snapshot, _ = m["string"].(string)
	}
	for _, f := range []struct {
		field     string
		got, want any
	}{
		{"id", e.Record["id"], w.ID},
		{"subject", e.Record["subject"], "/blobServices/default/containers/" + w.Container + "/blobs/" + w.Blob},
		{"eventType", e.Record["eventType"], w.EventType},
		{"eventTime", e.Record["eventTime"], w.EventTime},
		{"api", e.Data["api"], w.API},
		{"sequencer", e.Data["sequencer"], w.Sequencer},
		{"snapshot", snapshot, w.Snapshot},
	} {
		if f.got != f.want {
			t.Fatalf("%s: %s is %q, announced %q", e.Position, f.field, f.got, f.want)
		}
	}
	topic, _ := e.Record["topic"].(string)
	if !strings.Contains(topic, "/storageAccounts/") || !strings.HasPrefix(topic, "/subscriptions/") {
		t.Fatalf("%s: topic %q", e.Position, topic)
	}
	if request := e.Data["requestId"]; request != w.ID[:30]+"000000" {
		t.Fatalf("%s: request id %q of event %q", e.Position, request, w.ID)
	}
}

// checkManifests returns the status of each segment by its begin, in order.
func checkManifests(t *testing.T, root string) (statuses []string, consumable string) {
	t.Helper()
	names, err := fs.Glob(os.DirFS(root), "idx/segments/*/*/*/*/meta.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		var m struct {
			Begin, Status  string
			IntervalSecs   int
			ChunkFilePaths []string
			Config         struct{ NumShards int }
		}
		readJSON(t, path.Join(root, name), &m)
		if m.IntervalSecs == 0 || m.ChunkFilePaths == nil || m.Config.NumShards != len(m.ChunkFilePaths) {
			t.Errorf("%s: %+v", name, m)
		}
		f := strings.Split(name, "/")
		if want := fmt.Sprintf("%s-%s-%sT%s:%s:00.000Z", f[2], f[3], f[4], f[5][:2], f[5][2:]); m.Begin != want {
			t.Errorf("%s begins at %s", name, m.Begin)
		}
		for i, p := range m.ChunkFilePaths {
			if want := fmt.Sprintf("$blobchangefeed/log/%02d/%s/", i, strings.Join(f[2:6], "/")); p != want {
				t.Errorf("%s lists %s, want %s", name, p, want)
			}
		}
		statuses = append(statuses, m.Status)
	}
	var s struct{ LastConsumable string }
	readJSON(t, path.Join(root, "meta/segments.json"), &s)
	return statuses, s.LastConsumable
}

func readJSON(t *testing.T, file string, to any) {
	t.Helper()
	data, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, to); err != nil {
		t.Fatalf("%s: %v", file, err)
	}
}
