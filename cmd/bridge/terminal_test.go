package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/offsets"
)

// hostile is a blob's name that clears the screen, sets the title, hides text, and forges a line.
const hostile = "a\x1b[2J\x1b]0;owned\x07\u009b31m\u202e\r\nbridge: all is well\x7f"

// act reports what in a text a terminal would act on.
func act(text string) string {
	for _, bad := range []string{"\x1b", "\x07", "\r", "\x7f", "\u009b", "\u202e", "\nbridge: all is well"} {
		if strings.Contains(text, bad) {
			return fmt.Sprintf("%q", bad)
		}
	}
	return ""
}

// hostileFeed is a feed with an event of that blob; its last chunk is damaged, and its name is hostile too.
func hostileFeed(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	text := func(s string) string { return string([]byte{byte(len(s)<<1&0x7f | 0x80), byte(len(s) >> 6)}) + s }
	const sync = "0123456789abcdef"
	schema := `{"type":"record","name":"E","fields":[{"name":"id","type":"string"},` +
		`{"name":"subject","type":"string"},{"name":"eventType","type":"string"},{"name":"eventTime","type":"string"}]}`
	event := text(hostile) + text("/blobServices/default/containers/c/blobs/"+hostile) + text("BlobCreated") +
		text("2026-01-01T00:10:00.0000000Z")
	bad := text(hostile) + text(hostile) + text("BlobCreated") + text(hostile)
	for name, content := range map[string]string{
		"meta/segments.json": `{"lastConsumable":"2026-01-01T00:00:00Z"}`,
		"idx/segments/2026/01/01/0000/meta.json": `{"begin":"2026-01-01T00:00:00Z","intervalSecs":3600,` +
			`"status":"Finalized","chunkFilePaths":["log/00/2026/01/01/0000/"]}`,
		"log/00/2026/01/01/0000/00000.avro": "Obj\x01\x02\x16avro.schema" + text(schema) + "\x00" + sync + "\x02" +
			text(event) + sync + "\x02" + text(bad) + sync,
	} {
		file := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(file), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// What others have named, or said, does nothing to the terminal that it is printed on.
func TestTerminal(t *testing.T) {
	t.Parallel()
	fake := fakebroker.New(t)
	setAll(t, map[string]string{
		"SOURCE_URL": "file://" + hostileFeed(t), "KAFKA_BROKERS": fake.ListenAddrs()[0], "NAME": "term",
		"OFFSETS_LEASES": "2", "COMMIT_INTERVAL": "50ms", "ON_ERROR": "dead_letter", "HTTP_ADDR": "off",
	})
	chunk := "log/00/2026/01/01/0000/00000.avro"
	if code, _, stderr := call(t, "run", "--once"); code != exitOK || act(stderr) != "" {
		t.Errorf("run: %d, %s in %s", code, act(stderr), stderr)
	}
	// An owner of a lease and an error of its that another client of the topic has made up.
	cl := fakebroker.Client(t, fake, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	cursor, err := json.Marshal(map[string]any{"version": 1, "owner": hostile, "segment": "2026/01/01/0000",
		"error": offsets.Failure{Error: hostile}})
	if err != nil {
		t.Fatal(err)
	}
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "term.offsets", Partition: 1, Key: []byte("cursor"),
		Value: cursor}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	for _, args := range []string{"dump", "dump --segment 2026/01/01/0000",
		"dump --segment 2026/01/01/0000 --output json", "dump " + environ(t)["BRIDGE_SOURCE_URL"][7:] + "/" + chunk,
		"dump --state", "dump --state --output json", "status", "status --output json", "check", "check --output json",
		"tail --from earliest --once --headers", "tail --from earliest --once --headers --output json",
		"verify --feed", "dump --at 1 nosuch" + hostile, hostile} {
		code, stdout, stderr := call(t, strings.Split(args, " ")...)
		if bad := act(stdout) + act(stderr); bad != "" {
			t.Errorf("bridge %.40q prints %s:\n%q\n%q", args, bad, stdout, stderr)
		}
		if strings.Contains(args, "json") {
			for d := json.NewDecoder(strings.NewReader(stdout)); d.More(); {
				var doc any
				if err := d.Decode(&doc); err != nil {
					t.Errorf("bridge %.40q, %d: %v in %q", args, code, err, stdout)
					break
				}
			}
		}
		if args == "status" && !strings.Contains(stdout, `\u001b[2J`) ||
			(strings.HasPrefix(args, "dump --segment") || strings.HasPrefix(args, "tail")) &&
				!strings.Contains(stdout, `\u001b[2J`) {
			t.Errorf("bridge %s does not show it: %q", args, stdout)
		}
	}
}
