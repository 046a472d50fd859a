//go:build integration

package integration

import (
	"bufio"
	"bytes"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/integration/stack"
)

// pythonRecord is what python/decode.py prints of a record.
type pythonRecord struct {
	Topic     string
	Partition int32
	Offset    int64
	Key       any
	Value     json.RawMessage
	Null      bool
	Headers   map[string]string
}

// decoded reads topics to their ends with Confluent's Python client, which knows the brokers and the registry, and
// nothing of the bridge.
func decoded(t *testing.T, topics ...string) (records []pythonRecord) {
	t.Helper()
	settle(t, shared.KafkaBrokers, topics...)
	cmd := exec.CommandContext(t.Context(), python(t),
		append([]string{"python/decode.py", strings.Join(shared.KafkaBrokers, ","), shared.SchemaRegistryURL},
			topics...)...)
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("decode.py: %v\n%s", err, stderr.Bytes())
	}
	lines := bufio.NewScanner(bytes.NewReader(out))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var r pythonRecord
		if err := json.Unmarshal(lines.Bytes(), &r); err != nil {
			t.Fatalf("%s: %v", lines.Bytes(), err)
		}
		records = append(records, r)
	}
	return records
}

// settle returns when no transaction is open on the topics, which the end of one is for some moments after its commit:
// the client takes what comes before for the end of the topic.
func settle(t *testing.T, brokers []string, topics ...string) {
	t.Helper()
	admin := kadm.NewClient(client(t, brokers))
	// a condition of the broker's
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		stable, err := admin.ListCommittedOffsets(t.Context(), topics...)
		if err != nil {
			t.Fatal(err)
		}
		ends, err := admin.ListEndOffsets(t.Context(), topics...)
		if err != nil {
			t.Fatal(err)
		}
		open := false
		ends.Each(func(end kadm.ListedOffset) {
			at, ok := stable.Lookup(end.Topic, end.Partition)
			open = open || !ok || at.Offset < end.Offset
		})
		if !open {
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("a transaction stays open on %v", topics)
		}
	}
}

// installing is held while an interpreter is installed.
var installing sync.Mutex

// python returns an interpreter that has what decode.py needs.
func python(t *testing.T) string {
	t.Helper()
	return pythonWith(t, "python")
}

// pythonWith returns an interpreter with the requirements in a directory, which are installed once into the stack's
// cache.
func pythonWith(t *testing.T, dir string) string {
	t.Helper()
	cache, err := stack.CacheDir()
	if err != nil {
		t.Fatal(err)
	}
	installing.Lock()
	defer installing.Unlock()
	venv, requirements := filepath.Join(cache, filepath.Base(dir)), filepath.Join(dir, "requirements.txt")
	interpreter, stamp := filepath.Join(venv, "bin", "python"), filepath.Join(venv, "requirements.txt")
	want, err := os.ReadFile(requirements)
	if err != nil {
		t.Fatal(err)
	}
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, want) {
		return interpreter
	}
	for _, args := range [][]string{
		{"python3", "-m", "venv", "--clear", venv},
		{interpreter, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "-r",
			requirements},
	} {
		if out, err := exec.CommandContext(t.Context(), args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(args, " "), err, out)
		}
	}
	if err := os.WriteFile(stamp, want, 0o644); err != nil {
		t.Fatal(err)
	}
	return interpreter
}
