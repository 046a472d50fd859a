//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/internal/testing/feedsim"
)

// history is a feed. It folds into the blobs that there are at its end, or before a time: what every example must have.
type history []feedsim.Event

func (a history) blobs(before time.Time) (paths []string) {
	live := map[string]bool{}
	for _, e := range a {
		at, err := time.Parse(time.RFC3339Nano, e.EventTime)
		switch {
		case !e.State || err != nil || !before.IsZero() && !at.Before(before):
		case e.Delete:
			delete(live, e.Key)
		default:
			live[e.Key] = true
		}
	}
	return slices.Sorted(maps.Keys(live))
}

// exampleFeed writes a feed, and returns what is in it and the settings of a bridge that delivers it to a new topic.
func exampleFeed(t *testing.T) (a history, topic string, settings []string) {
	t.Helper()
	dir := t.TempDir()
	spec := feedsim.Spec{Seed: 7, Segments: 8, Shards: 3, EventsPerSegment: 2000, Blobs: 400, HotShare: 0.1,
		Versions: []int{6}}
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), spec, func(e feedsim.Event) { a = append(a, e) }); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, shared.KafkaBrokers, -1)
	return a, topic, []string{"NAME=" + name, "TOPIC=" + topic, "KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ","),
		"SOURCE_URL=" + fileURL(t, dir), "SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "POLL_INTERVAL=500ms",
		"DEBUG=txn_records=300,quiet_interval=1s"}
}

// killed runs an example and the bridge beside each other, kills both several times, and lets them finish. Done reports
// whether the example has read all that is in the topic.
func killed(t *testing.T, topic string, settings []string, example func() *exec.Cmd, done func() bool) {
	t.Helper()
	begin := func() (*exec.Cmd, *logBuffer) {
		cmd, log := example(), new(logBuffer)
		cmd.Stdout, cmd.Stderr = log, log
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		return cmd, log
	}
	for range 5 {
		p := start(t, []string{"run"}, settings...)
		eventually(t, time.Minute, "there are records to read", func() bool { return end(t, topic) > 0 })
		cmd, log := begin()
		eventually(t, time.Minute, "the example reads", func() bool { return strings.Contains(log.String(), "reading") })
		time.Sleep(time.Duration(500+rand.IntN(1500)) * time.Millisecond) // the moment of the kill, which is random
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		p.signal(syscall.SIGKILL)
		p.wait(t, time.Minute)
	}
	runOnce(t, settings...)
	cmd, log := begin()
	defer func() { _ = cmd.Process.Kill(); _ = cmd.Wait() }()
	defer func() {
		if t.Failed() {
			t.Logf("the example says: %s", log)
		}
	}()
	eventually(t, time.Minute, "the example has read all", done)
}

// end returns the sum of the ends of a topic's partitions.
func end(t *testing.T, topic string) (sum int64) {
	t.Helper()
	ends, err := kadm.NewClient(client(t, shared.KafkaBrokers)).ListCommittedOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	ends.Each(func(o kadm.ListedOffset) { sum += o.Offset })
	return sum
}

// output runs a command and returns what it prints, without spaces around it.
func output(t *testing.T, cmd *exec.Cmd) string {
	t.Helper()
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", cmd, err, out)
	}
	return strings.TrimSpace(string(out))
}

// The index in PostgreSQL is the account at the time that it names, after kills of the example and of the bridge.
func TestExamplePostgres(t *testing.T) {
	t.Parallel()
	url, bin := postgres(t)
	program := filepath.Join(t.TempDir(), "postgres")
	build := exec.Command("go", "build", "-o", program, ".")
	build.Dir = "../examples/postgres"
	output(t, build)
	a, topic, settings := exampleFeed(t)
	query := func(sql string) string {
		return output(t, exec.Command(filepath.Join(bin, "psql"), "-X", "-A", "-t", "-d", url, "-c", sql))
	}
	killed(t, topic, settings, func() *exec.Cmd {
		cmd := exec.Command(program)
		cmd.Env = append(os.Environ(), "DATABASE_URL="+url, "TOPIC="+topic,
			"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","))
		return cmd
	}, func() bool {
		n, err := strconv.ParseInt(query(`select count(*) from progress where resolved = (select max(resolved) from progress)`),
			10, 64)
		at, _, _ := strings.Cut(query(`select resolved from closed`), ".")
		return err == nil && n == partitions && at == strconv.FormatInt(a.lastMarker(t).UnixNano(), 10)
	})
	got, want := strings.Split(query(`select path from blobs order by path collate "C"`), "\n"), a.blobs(a.lastMarker(t))
	if !slices.Equal(got, want) || len(want) < 100 {
		t.Errorf("the index has %d blobs, the account %d", len(got), len(want))
	}
}

// The table in Iceberg is the account at the marker that it names, whenever somebody looks, after kills.
func TestExampleIceberg(t *testing.T) {
	t.Parallel()
	interpreter := pythonWith(t, "../examples/iceberg")
	a, topic, settings := exampleFeed(t)
	dir := t.TempDir()
	env := append(os.Environ(), "TOPIC="+topic, "APPEND_SECONDS=0.3",
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"PYICEBERG_CATALOG__DEFAULT__TYPE=sql", "PYICEBERG_CATALOG__DEFAULT__URI=sqlite:///"+filepath.Join(dir, "catalog.db"),
		"PYICEBERG_CATALOG__DEFAULT__WAREHOUSE="+fileURL(t, dir))
	const script = `from pyiceberg.catalog import load_catalog
catalog = load_catalog()
if catalog.table_exists("azure.blobs"):
    table = catalog.load_table("azure.blobs")
    snapshot = table.current_snapshot()
    if snapshot:
        print(snapshot.summary["resolved"])
        for path in sorted(table.scan().to_arrow()["path"].to_pylist()): print(path)`
	killed(t, topic, settings, func() *exec.Cmd {
		cmd := exec.Command(interpreter, "../examples/iceberg/worker.py")
		cmd.Env = env
		return cmd
	}, func() bool {
		look := exec.Command(interpreter, "-c", script)
		look.Env = env
		lines := strings.Split(output(t, look), "\n")
		return a.complete(t, lines[0], lines[1:])
	})
}

// The list in the file is the account at the marker that it names, whenever somebody looks, after kills.
func TestExampleNode(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for _, name := range []string{"package.json", "blobs.js"} {
		text, err := os.ReadFile(filepath.Join("../examples/node", name))
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	install := exec.Command("npm", "install", "--no-package-lock", "--no-audit", "--no-fund", "--loglevel=error")
	install.Dir = dir
	output(t, install)
	a, topic, settings := exampleFeed(t)
	file := filepath.Join(dir, "blobs.json")
	killed(t, topic, settings, func() *exec.Cmd {
		cmd := exec.Command("node", filepath.Join(dir, "blobs.js"))
		cmd.Env = append(os.Environ(), "FILE="+file, "TOPIC="+topic,
			"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","))
		return cmd
	}, func() bool {
		text, err := os.ReadFile(file)
		if err != nil {
			return false
		}
		var list struct {
			Resolved string
			Blobs    map[string]any
		}
		if err := json.Unmarshal(text, &list); err != nil {
			t.Fatal(err)
		}
		return a.complete(t, list.Resolved, slices.Sorted(maps.Keys(list.Blobs)))
	})
}

// complete compares blobs with the account at a marker, and reports whether that is the last one.
func (a history) complete(t *testing.T, resolved string, got []string) bool {
	t.Helper()
	ns, err := strconv.ParseInt(strings.TrimSuffix(resolved, ".0000000000"), 10, 64)
	if err != nil {
		return false // there is none yet
	}
	at := time.Unix(0, ns).UTC()
	if want := a.upTo(t, at).blobs(time.Time{}); !slices.Equal(got, want) || len(want) < 100 {
		t.Fatalf("at %s there are %d blobs, in the account %d", at, len(got), len(want))
	}
	return at.Equal(a.lastMarker(t))
}

// upTo returns the part of the feed whose markers are at or before a time.
func (a history) upTo(t *testing.T, at time.Time) (part history) {
	t.Helper()
	for _, e := range a {
		if !(history{e}).lastMarker(t).After(at) {
			part = append(part, e)
		}
	}
	return part
}

// The table in ClickHouse is the account after kills.
func TestExampleClickHouse(t *testing.T) {
	t.Parallel()
	interpreter := pythonWith(t, "../examples/clickhouse")
	a, topic, settings := exampleFeed(t)
	dir, admin := t.TempDir(), kadm.NewClient(client(t, shared.KafkaBrokers))
	killed(t, topic, settings, func() *exec.Cmd {
		cmd := exec.Command(interpreter, "../examples/clickhouse/load.py")
		cmd.Env = append(os.Environ(), "DATABASE="+dir, "TOPIC="+topic, "GROUP="+topic,
			"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","))
		return cmd
	}, func() bool {
		stored, err := admin.FetchOffsets(t.Context(), topic)
		if err != nil {
			t.Fatal(err)
		}
		var sum int64
		stored.Each(func(o kadm.OffsetResponse) { sum += o.At })
		return sum >= end(t, topic)-partitions // the last of a partition is the end of a transaction
	})
	const script = `import json, sys
from chdb import session
db = session.Session(sys.argv[1])
for line in str(db.query("select path from blobs final order by path format JSONEachRow")).splitlines():
    print(json.loads(line)["path"])
print(db.query("select min(resolved) from markers final"))`
	lines := strings.Split(output(t, exec.Command(interpreter, "-c", script, dir)), "\n")
	got, marker := lines[:len(lines)-1], lines[len(lines)-1]
	if want := a.blobs(time.Time{}); !slices.Equal(got, want) || len(want) < 100 {
		t.Errorf("the table has %d blobs, the account %d", len(got), len(want))
	}
	if want := strconv.FormatInt(a.lastMarker(t).UnixNano(), 10); marker != want {
		t.Errorf("the table is complete up to %s, want %s", marker, want)
	}
}

// lastMarker is the time of the last marker: 15 minutes before the end of the newest segment.
func (a history) lastMarker(t *testing.T) time.Time {
	t.Helper()
	at, err := time.Parse("2006/01/02/1504", a[len(a)-1].Segment)
	if err != nil {
		t.Fatal(err)
	}
	return at.Add(45 * time.Minute)
}

// The vector store has an embedding of every blob that there is, and none of those that are deleted, after kills.
func TestExampleVectors(t *testing.T) {
	t.Parallel()
	interpreter := pythonWith(t, "../examples/vectors")
	a, topic, settings := exampleFeed(t)
	blobs := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = fmt.Fprint(w, "the text of ", r.URL.Path)
	}))
	defer blobs.Close()
	file := filepath.Join(t.TempDir(), "vectors.db")
	env := append(os.Environ(), "DATABASE="+file, "TOPIC="+topic, "BLOBS_URL="+blobs.URL, "TYPES=application/",
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","))
	query := func(sql string) string {
		const script = `import apsw, sqlite_vec, sys
db = apsw.Connection(sys.argv[1]); db.set_busy_timeout(30000); db.enable_load_extension(True); sqlite_vec.load(db)
for row in db.execute(sys.argv[2]): print(row[0])`
		return output(t, exec.Command(interpreter, "-c", script, file, sql))
	}
	killed(t, topic, settings, func() *exec.Cmd {
		cmd := exec.Command(interpreter, "../examples/vectors/worker.py")
		cmd.Env = env
		return cmd
	}, func() bool {
		n, err := strconv.ParseInt(query("select coalesce(sum(next), 0) from progress"), 10, 64)
		return err == nil && n >= end(t, topic)-partitions // the last of a partition is the end of a transaction
	})
	got, want := strings.Split(query("select path from blobs join vectors on vectors.rowid = id order by path"), "\n"),
		a.blobs(time.Time{})
	if !slices.Equal(got, want) || len(want) < 100 {
		t.Errorf("the store has %d blobs, the account %d", len(got), len(want))
	}
}

// postgres starts a server of Debian's package, which it installs if it may, and returns the address of a database and
// where its programs are.
func postgres(t *testing.T) (url, bin string) {
	t.Helper()
	const programs = "/usr/lib/postgresql/*/bin"
	if found, _ := filepath.Glob(programs); len(found) == 0 && os.Getuid() == 0 {
		output(t, exec.Command("apt-get", "update", "-q"))
		output(t, exec.Command("apt-get", "install", "-y", "-q", "--no-install-recommends", "postgresql"))
	}
	found, err := filepath.Glob(programs)
	if err != nil || len(found) == 0 {
		t.Fatal("there is no PostgreSQL: apt-get install postgresql")
	}
	bin = found[len(found)-1]
	dir, err := os.MkdirTemp("", "postgres") // a path for a socket is short
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	as := func(name string, args ...string) *exec.Cmd { return exec.Command(filepath.Join(bin, name), args...) }
	if os.Getuid() == 0 { // the server refuses to run as root
		output(t, exec.Command("chown", "postgres", dir))
		as = func(name string, args ...string) *exec.Cmd {
			return exec.Command("runuser", append([]string{"-u", "postgres", "--", filepath.Join(bin, name)}, args...)...)
		}
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	port := l.Addr().(*net.TCPAddr).Port
	_ = l.Close()
	data := filepath.Join(dir, "data")
	output(t, as("initdb", "-D", data, "-A", "trust", "-U", "postgres"))
	ctl := func(args ...string) *exec.Cmd {
		return as("pg_ctl", append([]string{"-D", data, "-w", "-l", filepath.Join(dir, "log")}, args...)...)
	}
	output(t, ctl("-o", fmt.Sprintf("-p %d -c listen_addresses=127.0.0.1 -k %s", port, dir), "start"))
	t.Cleanup(func() { _ = ctl("-m", "immediate", "stop").Run() })
	return fmt.Sprintf("postgres://postgres@127.0.0.1:%d/postgres", port), bin
}
