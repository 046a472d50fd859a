package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/internal/testing/realfeed"
	"blobfeed/verify/judge"
)

// The feeds of real accounts are delivered from a directory and from a storage service, the run ends, and verify
// agrees. The records are what hamba/avro decodes, each event as often as the log has it.
func TestRealAccounts(t *testing.T) {
	t.Parallel()
	for _, a := range realfeed.Accounts {
		files := a.At(t, "../..", realfeed.End)
		t.Run(a.Name+" in a directory", func(t *testing.T) {
			c := realAccount(t, "all", map[string]string{"SOURCE_URL": "file://" + a.Unpack(t, "../..")})
			runRealAccount(t, &a)
			verifyRealAccount(t, a.Delivered, a.Twice)
			compareRecords(t, c, files, a.Waits, true)
			checkOpen(t, a.Waits)
		})
		t.Run(a.Name+" over HTTP", func(t *testing.T) {
			c := realAccount(t, "state", overHTTP(t, &a, &recordedService{files: files}))
			runRealAccount(t, &a)
			verifyRealAccount(t, a.Changes, a.Twice)
			compareRecords(t, c, files, a.Waits, false)
		})
	}
}

// A real account as it was while its feed grew: a segment without a chunk, one that waits for another, a chunk in two
// lengths. Each run delivers what was published since, and reads no event again.
func TestRealAccountThatGrows(t *testing.T) {
	t.Parallel()
	a := realfeed.Accounts[slices.IndexFunc(realfeed.Accounts, func(a realfeed.Account) bool { return a.Waits != "" })]
	service := &recordedService{}
	c := realAccount(t, "all", overHTTP(t, &a, service))
	const grows = "log/00/2020/08/11/2300/00000.avro"
	for _, at := range []struct {
		time      string
		waits     bool // later segments for a.Waits
		delivered int
	}{
		{"2020-06-16T06:10:30Z", true, 1606},
		{"2020-08-10T20:01:00Z", true, 3656},
		{"2020-08-10T23:00:59Z", true, 4059},
		{"2020-08-11T23:02:59Z", true, 4059},
		{"2020-08-11T23:03:00Z", false, 4089},
		{"2020-08-12T00:00:00Z", false, 4379},
	} {
		now, err := time.Parse(time.RFC3339, at.time)
		if err != nil {
			t.Fatal(err)
		}
		files, last := a.At(t, "../..", now), a.Waits
		if !at.waits { // nobody recorded the manifest when it was finalized
			last = ""
			name := "idx/segments/" + a.Waits + "/meta.json"
			text := bytes.Replace(files.All()[name], []byte("Publishing"), []byte("Finalized"), 1)
			if err := files.Put(t.Context(), name, text); err != nil {
				t.Fatal(err)
			}
		}
		service.serve(files)
		if code, stdout, stderr := call(t, "run", "--once"); code != exitOK {
			t.Fatalf("%s: run --once: %d: %s%s", at.time, code, stdout, stderr)
		}
		if n := compareRecords(t, c, files, last, true); n != at.delivered {
			t.Errorf("%s: %d records, want %d", at.time, n, at.delivered)
		}
	}
	if len(service.ranges(grows)) == 0 {
		t.Error("the last run did not read the rest of the chunk that grows")
	}
	for _, r := range service.ranges(grows) { // the header, and what was appended
		if r != "bytes=0-16383" && !strings.HasPrefix(r, "bytes=21289-") {
			t.Errorf("the last run read %s", r)
		}
	}
	verifyRealAccount(t, a.Events, a.Twice)
}

// realAccount starts a broker, and sets what run and verify need beside settings.
func realAccount(t *testing.T, events string, settings map[string]string) *kfake.Cluster {
	t.Helper()
	c := fakebroker.New(t)
	setAll(t, map[string]string{
		"KAFKA_BROKERS": strings.Join(c.ListenAddrs(), ","), "TOPIC": changes, "EVENTS": events,
		"TOPIC_PARTITIONS": "4", "TOPIC_REPLICATION": "1", "OFFSETS_LEASES": "4", "POLL_INTERVAL": "50ms", "NAME": "b",
	})
	setAll(t, settings)
	return c
}

func runRealAccount(t *testing.T, a *realfeed.Account) {
	t.Helper()
	code, stdout, stderr := call(t, "run", "--once")
	if code != exitOK {
		t.Fatalf("run --once: %d: %s%s", code, stdout, stderr)
	}
	if says := strings.Contains(stderr, "later segments wait until Azure finalizes the open one"); says != (a.Waits != "") ||
		!strings.Contains(stderr, a.Waits) {
		t.Errorf("the end does not say what waits for %q: %s", a.Waits, stderr)
	}
}

// checkOpen checks that check warns of the segment for which later ones wait, until Azure has finalized it.
func checkOpen(t *testing.T, waits string) {
	t.Helper()
	const warning = "warning  open "
	if _, stdout, _ := call(t, "check"); strings.Contains(stdout, warning) != (waits != "") ||
		!strings.Contains(stdout, waits) {
		t.Errorf("%s waits: %s", waits, stdout)
	}
	if waits == "" {
		return
	}
	dir := strings.TrimPrefix(environ(t)["BRIDGE_SOURCE_URL"], "file://")
	manifest := filepath.Join(dir, "idx/segments", waits, "meta.json")
	text, err := os.ReadFile(manifest)
	if err == nil {
		text = bytes.Replace(text, []byte("Publishing"), []byte("Finalized"), 1)
		err = os.WriteFile(manifest, text, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	if _, stdout, _ := call(t, "check"); strings.Contains(stdout, warning) {
		t.Errorf("%s is finalized: %s", waits, stdout)
	}
}

// verifyRealAccount checks that verify --feed finds as many records, and copies of events, and that they keep the
// promises.
func verifyRealAccount(t *testing.T, records, twice int) {
	t.Helper()
	code, stdout, stderr := call(t, "verify", "--feed", "--output", "json")
	var reports []judge.Report
	if err := json.Unmarshal([]byte(stdout), &reports); err != nil {
		r, _ := statusFrom(t, stdout)
		reports = []judge.Report{r}
	}
	if r := reports[0]; code != exitOK || r.Records != int64(records) || r.Twice != int64(twice) {
		t.Errorf("verify --feed: %d: %d records, want %d; %d twice in the log, want %d: %s%s", code, r.Records,
			records, r.Twice, twice, stdout, stderr)
	}
}

// compareRecords checks that the topic has a record of each event in the files, up to the segment last, in the order of
// each chunk. All are wanted, or those that change a blob. It returns how many records there are.
func compareRecords(t *testing.T, c *kfake.Cluster, files *account.Files, last string, all bool) (n int) {
	t.Helper()
	want := decoded(t, files, last, all)
	got := map[string][]*kgo.Record{} // by chunk
	for _, r := range read(t, c, changes) {
		if r.Key != nil {
			n++
			chunk := header(r, "position")[:len("2020/01/01/0000/00/00000")]
			got[chunk] = append(got[chunk], r)
		}
	}
	for chunk := range got {
		if want[chunk] == nil {
			t.Errorf("%s has %d records, want none", chunk, len(got[chunk]))
		}
	}
	for chunk, events := range want {
		records := got[chunk]
		slices.SortFunc(records, func(a, b *kgo.Record) int { return cmp.Compare(place(a), place(b)) })
		if len(records) != len(events) {
			t.Errorf("%s has %d records, want %d", chunk, len(records), len(events))
			continue
		}
		for i, r := range records {
			compareRecord(t, chunk, r, events[i])
		}
	}
	return n
}

// place orders the records of a chunk.
func place(r *kgo.Record) int64 {
	var offset, index int64
	_, _ = fmt.Sscanf(header(r, "position")[len("2020/01/01/0000/00/00000/"):], "%d/%d", &offset, &index)
	return offset<<16 | index
}

// decoded returns the events of every chunk up to a segment, as hamba/avro decodes them: all but Control, or those that
// change a blob.
func decoded(t *testing.T, files *account.Files, last string, all bool) map[string][]map[string]any {
	t.Helper()
	chunks := map[string][]map[string]any{}
	for name, text := range files.All() {
		p := strings.Split(strings.TrimSuffix(name, ".avro"), "/") // log/00/2020/01/01/0000/00000
		if p[0] != "log" {
			continue
		}
		segment := strings.Join(p[2:6], "/")
		if last != "" && segment > last {
			continue
		}
		for _, ev := range decodedChunk(t, text) {
			switch ev["eventType"] {
			case "Control":
				continue
			case "BlobCreated", "BlobDeleted", "BlobPropertiesUpdated", "BlobMetadataUpdated", "BlobTierChanged":
			default:
				if !all {
					continue
				}
			}
			chunk := segment + "/" + p[1] + "/" + p[6]
			chunks[chunk] = append(chunks[chunk], ev)
		}
	}
	return chunks
}

func decodedChunk(t *testing.T, text []byte) (events []map[string]any) {
	t.Helper()
	r := avro.NewReader(bytes.NewReader(text[4:]), 1<<16) // behind the magic
	var meta map[string][]byte
	r.ReadVal(avro.MustParse(`{"type":"map","values":"bytes"}`), &meta)
	sync := make([]byte, 16)
	r.Read(sync)
	schema, err := avro.Parse(string(meta["avro.schema"]))
	if err != nil {
		t.Fatal(err)
	}
	for r.Peek(); r.Error == nil; r.Peek() {
		count := r.ReadLong()
		r.ReadLong() // the size of the block
		for range count {
			var ev any
			r.ReadVal(schema, &ev)
			events = append(events, ev.(map[string]any))
		}
		r.Read(sync)
	}
	if !errors.Is(r.Error, io.EOF) {
		t.Fatal(r.Error)
	}
	return events
}

// compareRecord compares a record with the event that it was made of.
func compareRecord(t *testing.T, chunk string, r *kgo.Record, ev map[string]any) {
	t.Helper()
	container, blob, _ := strings.Cut(strings.TrimPrefix(ev["subject"].(string), "/blobServices/default/containers/"),
		"/blobs/")
	path := container + "/" + blob
	var key []string
	var value struct{ After map[string]any }
	if err := errors.Join(json.Unmarshal(r.Key, &key), json.Unmarshal(r.Value, &value)); err != nil ||
		!slices.Equal(key, []string{path}) || header(r, "ce_id") != ev["id"] {
		t.Fatalf("%s: %v: key %s, id %s of %s %s", chunk, err, r.Key, header(r, "ce_id"), path, ev["id"])
	}
	if ev["eventType"] == "BlobDeleted" {
		if value.After != nil {
			t.Errorf("%s: the deletion of %s is a row: %s", chunk, path, r.Value)
		}
		return
	}
	account := ev["topic"].(string)
	of := map[string]any{
		"account": account[strings.LastIndex(account, "/")+1:], "container": container, "blob": blob, "path": path,
		"event_id": ev["id"], "event_time": ev["eventTime"], "event_type": ev["eventType"],
		"schema_version": ev["schemaVersion"],
	}
	data := ev["data"].(map[string]any)
	for column, got := range value.After {
		want, own := of[column]
		if !own {
			want = data[camel(column)]
		}
		if want = plainOf(want); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %s of %s is %v, want %v", chunk, column, path, got, want)
		}
	}
}

// camel returns the field of a column: contentLength of content_length.
func camel(column string) string {
	words := strings.Split(column, "_")
	for i, w := range words[1:] {
		words[1+i] = strings.ToUpper(w[:1]) + w[1:]
	}
	return strings.Join(words, "")
}

// plainOf returns a decoded value as JSON has it. Hamba decodes a union to a map with its branch, and null and an empty
// text are the same to us.
func plainOf(v any) any {
	if branch, ok := v.(map[string]any); ok && len(branch) == 1 {
		for name, inner := range branch {
			if name == "map" || name == "string" || strings.HasPrefix(name, "Microsoft.") {
				v = inner
			}
		}
	}
	switch v := v.(type) {
	case nil:
		return nil
	case string:
		if v == "" {
			return nil
		}
		return v
	case int64:
		return float64(v)
	}
	text, _ := json.Marshal(v)
	var plain any
	_ = json.Unmarshal(text, &plain)
	return plain
}

// recordedService serves the files of a container, and remembers which ranges were read.
type recordedService struct {
	mu    sync.Mutex
	files *account.Files
	reads map[string][]string
}

func (p *recordedService) serve(files *account.Files) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.files, p.reads = files, map[string][]string{}
}

// ranges returns those that were read of a file since serve.
func (p *recordedService) ranges(name string) []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.reads[name]
}

// overHTTP serves the files as the storage service of an account, and returns the settings that read it.
func overHTTP(t *testing.T, a *realfeed.Account, p *recordedService) map[string]string {
	t.Helper()
	p.serve(p.files)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		p.mu.Lock()
		if _, name, ok := strings.Cut(r.URL.Path, "/$blobchangefeed/"); ok {
			p.reads[name] = append(p.reads[name], cmp.Or(r.Header.Get("x-ms-range"), r.Header.Get("Range")))
		}
		service := &account.Server{Account: account.New(time.Now), Feed: p.files}
		p.mu.Unlock()
		if v := r.Header.Get("x-ms-version"); v != "2026-02-06" {
			t.Errorf("%s %s asks for version %q", r.Method, r.URL, v)
		}
		service.ServeHTTP(w, r)
	}))
	t.Cleanup(s.Close)
	return map[string]string{
		"SOURCE_URL": s.URL + "/" + a.Name, "SOURCE_AUTH": "shared_key", "SOURCE_ACCOUNT": a.Name, "SOURCE_KEY": "a2V5",
	}
}
