package deploy

import (
	"bytes"
	"compress/flate"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
)

// attack is a chunk of equal blocks. Each claims count records, which are data, written with the schema.
type attack struct {
	schema string
	blocks int
	count  int64
	data   string
}

// chunk returns the attack as a file, whose blocks are deflated.
func (a attack) chunk(t *testing.T) []byte {
	t.Helper()
	const sync = "0123456789abcdef"
	long := func(b []byte, v int) []byte { return binary.AppendVarint(b, int64(v)) }
	text := func(b []byte, s string) []byte { return append(long(b, len(s)), s...) }
	b := text(text([]byte("Obj\x01\x04"), "avro.codec"), "deflate")
	b = append(text(text(b, "avro.schema"), a.schema), "\x00"+sync...)
	var packed bytes.Buffer
	w, err := flate.NewWriter(&packed, flate.BestCompression)
	if err == nil {
		_, err = w.Write([]byte(a.data))
	}
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	for range a.blocks {
		b = append(text(long(b, int(a.count)), packed.String()), sync...)
	}
	if len(b) > 64<<10 {
		t.Fatalf("the chunk has %d bytes", len(b))
	}
	return b
}

// A chunk of 64 KB that unfolds to gigabytes stays below the limit of memory, in a segment of its own and in each shard
// at a time. It goes to the dead-letter topic, everything else is delivered, and the program keeps running.
func TestHostileChunks(t *testing.T) {
	if testing.Short() {
		t.Skip("it runs the program for each attack")
	}
	const limit = 256 << 20
	const huge = "\xfe\xff\xff\xff\xff\xff\xff\xff\xff\x01"
	field := func(name, typ string) string {
		return fmt.Sprintf(
			`{"type":"record","name":"E","fields":[{"name":"id","type":"string"},{"name":"subject","type":"string"},`+
				`{"name":"eventType","type":"string"},{"name":"eventTime","type":"string"},`+
				`{"name":"data","type":{"type":"record","name":"D","fields":[{"name":%q,"type":%s}]}}]}`,
			name,
			typ,
		)
	}
	text := func(s string) string { return string(binary.AppendVarint(nil, int64(len(s)))) + s }
	event := func(blob string) string {
		return text("x") + text("/blobServices/default/containers/hostile/blobs/"+blob) + text("BlobCreated") +
			text("2026-01-01T00:10:00.0000000Z")
	}
	const texts = `{"type":"map","values":"string"}`
	zeros := strings.Repeat("\x00", 40<<20)
	for name, a := range map[string]attack{
		// Above the limit of a block: damage.
		"map": {field("previousInfo", texts), 1, 1, event("a") + huge + zeros},
		"tags": {field("blobTagsUpdated", `{"type":"map","values":`+texts+`}`), 3, 1,
			event("a") + huge + zeros[:1_000_000]},
		"properties": {field("blobPropertiesUpdated",
			`{"type":"map","values":{"type":"record","name":"V","fields":[]}}`), 3, 1,
			event("a") + huge + zeros[:1_000_000]},
		"bomb": {field("url", `"string"`), 1, 1, zeros},
		"empty events": {`{"type":"record","name":"E","fields":[{"name":"x","type":"null"}]}`, 3, 1 << 18,
			""},
		// Below it: records, and events that can't be one.
		"events": {field("url", `"string"`), 60, 2000, strings.Repeat(event("b")+"\x00", 2000)},
		"symbols": {field("api", fmt.Sprintf(`{"type":"enum","name":"A","symbols":[%q]}`,
			strings.Repeat("\x1b", 3_000))), 60, 340, strings.Repeat(event("b")+"\x00", 340)},
		"texts": {field("url", `"string"`), 25, 7,
			strings.Repeat(event("c")+text(zeros[:140_000]), 7)},
		"a long text": {field("url", `"string"`), 30, 1, event("c") + text(zeros[:1_000_000])},
		"a long name": {field("url", `"string"`), 30, 1, event(zeros[:1_000_000]) + "\x00"},
		"a bad time": {field("url", `"string"`), 30, 1,
			text("x") + text("/") + text("BlobCreated") + text(zeros[:1_000_000]) + "\x00"},
		"a bad subject": {field("url", `"string"`), 30, 1,
			text("x") + text(zeros[:1_000_000]) + text("BlobCreated") + text("2026-01-01T00:10:00.0000000Z") + "\x00"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			chunk := a.chunk(t)
			dir := t.TempDir()
			if err := feedsim.Write(t.Context(), feedsim.Dir(dir), feedsim.Spec{Shards: 3, EventsPerSegment: 60,
				BlockEvents: 10, Segments: 3, Mix: feedsim.Mix{Created: 1}}, nil); err != nil {
				t.Fatal(err)
			}
			for shard := range 3 { // all at the same time
				file := filepath.Join(dir, fmt.Sprintf("log/%02d/2026/01/01/0100/00001.avro", shard))
				if err := os.WriteFile(file, chunk, 0o600); err != nil {
					t.Fatal(err)
				}
			}
			peak := survive(t, dir, 180)
			t.Logf("%s: %d bytes of chunk, a peak of %d MiB", name, len(chunk), peak>>20)
			if peak > limit {
				t.Errorf("a peak of %d MiB", peak>>20)
			}
		})
	}
}

// survive runs the program until it has delivered a number of events that are not hostile, and stops it. It returns how
// much memory it took at most.
func survive(t *testing.T, dir string, events int) int64 {
	t.Helper()
	fake := fakebroker.New(t)
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.Command(program, "run")
	cmd.Env = append(os.Environ(), "BRIDGE_SOURCE_URL=file://"+dir, "BRIDGE_KAFKA_BROKERS="+fake.ListenAddrs()[0],
		"GOMEMLIMIT=256MiB",
		"BRIDGE_ON_ERROR=dead_letter", "BRIDGE_HTTP_ADDR=127.0.0.1:0", "BRIDGE_POLL_INTERVAL=50ms",
		"BRIDGE_OFFSETS_LEASES=3", "BRIDGE_COMMIT_INTERVAL=100ms")
	var log bytes.Buffer
	cmd.Stdout, cmd.Stderr = &log, &log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	cl, err := kgo.NewClient(kgo.SeedBrokers(fake.ListenAddrs()...), kgo.ConsumeTopics("blob-changes", "blobfeed.dlq"),
		kgo.UnknownTopicRetries(-1),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.MetadataMinAge(50*time.Millisecond),
		kgo.MetadataMaxAge(100*time.Millisecond))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	good, hostile, dead := 0, 0, 0
	last := false
	for good < events || !last {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d good records, %d hostile ones, %d dead letters; then nothing:\n%.3000s", good, hostile, dead,
				log.String())
		}
		fetches.EachRecord(func(r *kgo.Record) {
			switch {
			case r.Topic == "blobfeed.dlq":
				dead++
			case bytes.Contains(r.Key, []byte("hostile/")):
				hostile++
			case r.Key != nil:
				good++
			default: // the marker of the last segment
				last = last || bytes.Contains(r.Value, []byte(strconv.FormatInt(time.Date(2026, 1, 1, 2, 45, 0, 0,
					time.UTC).UnixNano(), 10)))
			}
		})
	}
	if dead == 0 && hostile == 0 {
		t.Errorf("what is hostile is neither a record nor a dead letter:\n%.3000s", log.String())
	}
	peak, running := peakOf(cmd)
	if !running {
		t.Fatalf("it does not run any more:\n%.3000s", log.String())
	}
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if err := <-ended; err != nil {
		t.Errorf("it ends with %v:\n%.3000s", err, log.String())
	}
	t.Logf("%d records of hostile events, %d dead letters", hostile, dead)
	return peak
}

// peakOf returns how many bytes of memory a program has held at most. What wait4 reports includes the memory of this
// process, which the child shares until it executes the program.
func peakOf(cmd *exec.Cmd) (bytes int64, running bool) { return memoryOf(cmd, "VmHWM:") }

func memoryOf(cmd *exec.Cmd, field string) (bytes int64, running bool) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", cmd.Process.Pid))
	if err != nil {
		return 0, false
	}
	_, value, running := strings.Cut(string(status), field)
	if !running {
		return 0, false
	}
	kib, err := strconv.ParseInt(strings.Fields(value)[0], 10, 64)
	return kib << 10, err == nil
}
