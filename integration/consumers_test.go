//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/consumers/hours"
	"blobfeed/integration/feedsim"
	"blobfeed/verify"
)

// jobFeed is what the jobs read. Its last segment is open: its events are delivered, and not complete.
var jobFeed = feedsim.Spec{Seed: 5, Start: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC), Segments: 8, Shards: 3, EventsPerSegment: 2500, Blobs: 400,
	HotShare: 0.1, Versions: []int{5}, LeaveOpen: true}

// Consumers read what the bridge writes, as docs/consumers.md shows it: the bridge is killed on the way, and the topic
// holds a foreign transaction that was aborted. Every job finds what the feed holds, and gives out nothing that depends on
// completeness before a marker says so.
func TestConsumers(t *testing.T) {
	build := make(chan error, 1)
	go func() { build <- buildJobs(t.Context()) }()

	dir := t.TempDir()
	var events []feedsim.Event
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), jobFeed, func(e feedsim.Event) {
		if e.State {
			events = append(events, e)
		}
	}); err != nil {
		t.Fatal(err)
	}
	topic := deliver(t, dir, events)
	if err := <-build; err != nil {
		t.Fatal(err)
	}
	brokers := strings.Join(shared.KafkaBrokers, ",")

	t.Run("go: complete hours", func(t *testing.T) {
		t.Parallel()
		got, want := map[string]string{}, map[string]string{} // by event the hour
		buffer := hours.New(partitions, hours.Checkpoint{})
		c := consume(t, shared.KafkaBrokers, topic)
		c.onNote = func(r verify.Record) {
			complete, err := buffer.Add(r.Partition, r.Offset, r.Key, r.Value)
			if err != nil {
				t.Error(err)
			}
			for _, hour := range complete {
				for _, change := range hour.Changes {
					got[fmt.Sprintf("%s at %s", change.Key, change.Time)] = hour.Begin.String()
				}
			}
		}
		c.drain(t)
		for _, e := range events {
			hour := eventTime(e).Truncate(time.Hour)
			if _, complete := coveredBy(hour.Add(time.Hour)); complete {
				want[fmt.Sprintf("%s at %s", e.Key, eventTime(e))] = hour.String()
			}
		}
		equal(t, got, want)
	})

	t.Run("streams: latest state and join", func(t *testing.T) {
		t.Parallel()
		owners := topic + ".owners"
		createTopic(t, owners, partitions)
		live, want, lines := latest(events), map[string]string{}, &strings.Builder{}
		for i, path := range slices.Sorted(maps.Keys(live)) {
			if i%3 > 0 { // the others have no owner, and are left out
				fmt.Fprintf(lines, "%s\tteam-%d\n", path, i%7)
				want[path] = fmt.Sprintf("%s of team-%d", live[path], i%7)
			}
		}
		for p := range partitions {
			fmt.Fprintf(lines, "%s\tteam-0\n", aborted(p)) // who reads that one was written, finds its owner
		}
		runJob[struct{}](t, lines.String(), "Owners", brokers, owners)
		got := map[string]string{}
		for _, row := range runJob[struct {
			Path, Owner string
			EventID     string `json:"event_id"`
		}](t, "", "LatestState", brokers, topic+".latest-state", topic, owners) {
			got[row.Path] = row.EventID + " of " + row.Owner
		}
		equal(t, got, want)
	})

	t.Run("datastream: windows closed by markers", func(t *testing.T) {
		t.Parallel()
		const width = 15 * time.Minute
		type window struct {
			container string
			from      time.Time
		}
		got, want, late := map[window]released{}, map[window]released{}, 0
		for _, l := range runJob[struct {
			Container              string
			From                   time.Time
			Count, Watermark, Late int64
		}](t, "", "Windows", brokers, topic, fmt.Sprint(width.Minutes())) {
			if l.Late > 0 {
				late++
				continue
			}
			got[window{l.Container, l.From}] = released{l.Count, l.Watermark}
		}
		for _, e := range events {
			w := window{e.Container, eventTime(e).Truncate(width)}
			if mark, complete := coveredBy(w.from.Add(width)); complete {
				want[w] = released{want[w].count + 1, mark}
			}
		}
		equal(t, got, want)
		if late > 0 {
			t.Errorf("%d changes came late", late)
		}
	})

	t.Run("sql", func(t *testing.T) {
		t.Parallel()
		downloads := topic + ".downloads"
		createTopic(t, downloads, 1)
		joined := download(t, downloads, events)
		hours, hoursUpserts, openHours := map[string]released{}, map[string]int64{}, 0
		live, joins := map[string]string{}, map[string]string{}
		for _, row := range runJob[sqlRow](t, "", "Sql", "sql/windows.sql", "sql/state.sql", "sql/asof.sql",
			"localhost:9092="+brokers, "'blob-changes'='"+topic+"'", "'downloads'='"+downloads+"'") {
			switch row.Script {
			case "sql/windows.sql":
				if row.Watermark == math.MaxInt64 {
					openHours++ // released by the end of the input, not by a marker
					continue
				}
				hours[row.WindowStart], hoursUpserts[row.WindowStart] = released{row.Changes, row.Watermark}, row.Upserts
			case "sql/state.sql":
				switch row.Kind {
				case "+I", "+U":
					live[row.Path] = row.EventID
				case "-D":
					delete(live, row.Path)
				}
			case "sql/asof.sql":
				joins[probe{row.Path, row.TS}.String()] = row.EventID
			}
		}
		t.Run("windows closed by markers", func(t *testing.T) {
			want, upserts := map[string]released{}, map[string]int64{}
			for _, e := range events {
				from := eventTime(e).Truncate(time.Hour)
				if mark, complete := coveredBy(from.Add(time.Hour)); complete {
					hour := from.Format("2006-01-02T15:04")
					want[hour] = released{want[hour].count + 1, mark}
					if !e.Delete {
						upserts[hour]++
					}
				}
			}
			equal(t, hours, want)
			equal(t, hoursUpserts, upserts)
			if openHours != 2 {
				t.Errorf("%d hours were not complete, want the two that the last marker does not cover", openHours)
			}
		})
		t.Run("latest state", func(t *testing.T) { equal(t, live, latest(events)) })
		t.Run("as-of join", func(t *testing.T) { equal(t, joins, joined) })
	})
}

// download writes that somebody loads blobs: in the very millisecond of an event, just before it, and long after it. It
// returns which event made what each of them got.
func download(t *testing.T, topic string, events []feedsim.Event) map[string]string {
	t.Helper()
	want := map[string]string{}
	var probes []probe
	for i := 100; i < len(events)-100; i += 997 {
		at := eventTime(events[i]).Truncate(time.Millisecond)
		for _, at := range []time.Time{at, at.Add(-time.Millisecond), at.Add(20 * time.Minute)} {
			p := probe{events[i].Key, at}
			probes = append(probes, p)
			if id := asOf(events, p); id != "" {
				want[p.String()] = id
			}
		}
	}
	slices.SortFunc(probes, func(a, b probe) int { return a.at.Compare(b.at) })
	cl := client(t, shared.KafkaBrokers)
	for _, p := range probes {
		value, err := json.Marshal(map[string]string{"path": p.path, "ts": p.at.Format("2006-01-02T15:04:05.000Z")})
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic, Value: value}).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	return want
}

// deliver lets the bridge deliver the feed, kills it on the way, and aborts a transaction that would mislead whoever reads
// it. It returns the topic, whose keys are paths.
func deliver(t *testing.T, dir string, events []feedsim.Event) string {
	t.Helper()
	complete := verify.NewComplete()
	for _, e := range events {
		complete.Expect(e.ID)
	}
	name, topic := names(t, shared.KafkaBrokers, -1)
	keep := "-1" // record timestamps are those of the events, which are older than the default retention
	if _, err := kadm.NewClient(client(t, shared.KafkaBrokers)).AlterTopicConfigs(t.Context(),
		[]kadm.AlterConfig{{Name: "retention.ms", Value: &keep}}, topic); err != nil {
		t.Fatal(err)
	}
	settings := []string{"NAME=" + name, "TOPIC=" + topic, "KEY_FORMAT=string", "KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ","),
		"SOURCE_URL=" + fileURL(t, dir), "SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "TXN_RECORDS=200"}
	c := consume(t, shared.KafkaBrokers, topic, verify.NewUnique(), complete, verify.NewOrder(), verify.NewResolved(partitions))
	rng := seed(t)
	p := start(t, []string{"run"}, settings...)
	moment := rng.Int64N(int64(len(events)) * 3 / 4)
	c.until(t, time.Minute, fmt.Sprintf("%d records", moment), func() bool { return c.data >= moment })
	p.signal(syscall.SIGKILL)
	<-p.done
	c.drain(t)
	t.Logf("%d of %d records came before the kill", c.data, len(events))
	if c.data >= int64(len(events)) {
		t.Fatal("the kill came too late")
	}
	abort(t, topic, events[0])
	runOnce(t, settings...)
	c.drain(t)
	c.check(t)
	return topic
}

// abort writes to every partition, and takes back, a change, a deletion, and a marker that would complete all there is.
func abort(t *testing.T, topic string, e feedsim.Event) {
	t.Helper()
	cl := client(t, shared.KafkaBrokers, kgo.TransactionalID(topic+".foreign"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if err := cl.BeginTransaction(); err != nil {
		t.Fatal(err)
	}
	at := eventTime(e)
	record := func(p int32, key, value string) *kgo.Record {
		r := &kgo.Record{Topic: topic, Partition: p, Value: []byte(value), Timestamp: at}
		if key != "" {
			r.Key = []byte(key)
		}
		return r
	}
	for p := range int32(partitions) {
		blob := aborted(int(p))
		if err := cl.ProduceSync(t.Context(),
			record(p, blob, fmt.Sprintf(`{"after": {"path": %q, "event_id": "aborted"}, "key": [%q], "updated": "%d.0000000000"}`, blob, blob, at.UnixNano())),
			record(p, e.Key, fmt.Sprintf(`{"after": null, "key": [%q], "updated": "%d.0000000000"}`, e.Key, at.UnixNano())),
			record(p, "", fmt.Sprintf(`{"resolved":"%d.0000000000"}`, at.Add(48*time.Hour).UnixNano())),
		).FirstErr(); err != nil {
			t.Fatal(err)
		}
	}
	if err := cl.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
}

// aborted is a blob that never was: the record of each partition that says so was taken back.
func aborted(partition int) string { return fmt.Sprintf("photos/aborted-%d", partition) }

func createTopic(t *testing.T, topic string, partitions int32) {
	t.Helper()
	if _, err := kadm.NewClient(client(t, shared.KafkaBrokers)).CreateTopic(t.Context(), partitions, -1, nil, topic); err != nil {
		t.Fatal(err)
	}
}

// released is the count of a window, and the watermark that released it.
type released struct{ count, watermark int64 }

// coveredBy returns the watermark that releases a window with this end, which is a millisecond below the first marker at or
// past it. There is none if the feed does not get there.
func coveredBy(end time.Time) (watermark int64, complete bool) {
	for i := range jobFeed.Segments - 1 { // the last one is open
		mark := jobFeed.Start.Add(time.Duration(i+1)*time.Hour - 15*time.Minute)
		if !mark.Before(end) {
			return mark.UnixMilli() - 1, true
		}
	}
	return 0, false
}

func eventTime(e feedsim.Event) time.Time {
	at, err := time.Parse(time.RFC3339Nano, e.EventTime)
	if err != nil {
		panic(err)
	}
	return at
}

// latest returns the last event of each blob that exists, by path.
func latest(events []feedsim.Event) map[string]string {
	ids := map[string]string{}
	for _, e := range events {
		if ids[e.Key] = e.ID; e.Delete {
			delete(ids, e.Key)
		}
	}
	return ids
}

// probe asks for the state of a blob at a time.
type probe struct {
	path string
	at   time.Time
}

func (p probe) String() string { return fmt.Sprintf("%s at %d", p.path, p.at.UnixMilli()) }

// asOf returns the event that made the blob what it was, or "" if it did not exist.
func asOf(events []feedsim.Event, p probe) (id string) {
	for _, e := range events {
		if e.Key == p.path && !eventTime(e).Truncate(time.Millisecond).After(p.at) {
			if id = e.ID; e.Delete {
				id = ""
			}
		}
	}
	return id
}

// equal compares, and shows the first differences.
func equal[K comparable, V comparable](t *testing.T, got, want map[K]V) {
	t.Helper()
	if len(want) == 0 {
		t.Fatal("nothing is expected: the feed is too small")
	}
	t.Logf("%d results, %d expected", len(got), len(want))
	var wrong []string
	for k, w := range want {
		if g, ok := got[k]; !ok || g != w {
			wrong = append(wrong, fmt.Sprintf("%v: got %v (%t), want %v", k, g, ok, w))
		}
	}
	for k, g := range got {
		if _, ok := want[k]; !ok {
			wrong = append(wrong, fmt.Sprintf("%v: got %v, want nothing", k, g))
		}
	}
	slices.Sort(wrong)
	if len(wrong) > 0 {
		t.Errorf("%d results are wrong, such as\n%s", len(wrong), strings.Join(wrong[:min(len(wrong), 10)], "\n"))
	}
}

const jobs = "consumers" // the folder

// buildJobs compiles them. Maven keeps the jars that they need in the user's own repository.
func buildJobs(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "mvn", "-q", "-B", "-Dstyle.color=never", "compile")
	cmd.Dir = jobs
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("building the jobs: %w\n%s", err, out)
	}
	return nil
}

// sqlRow is a row of one of the scripts, and what the runner adds to it.
type sqlRow struct {
	Script, Kind     string
	Watermark        int64
	Path             string
	EventID          string    `json:"event_id"`
	WindowStart      string    `json:"window_start"`
	Changes, Upserts int64     // windows
	TS               time.Time // asof
}

// runJob runs a job to its end and returns the lines it prints.
func runJob[T any](t *testing.T, stdin, main string, args ...string) []T {
	t.Helper()
	classpath, err := os.ReadFile(filepath.Join(jobs, "target", "classpath"))
	if err != nil {
		t.Fatal(err)
	}
	var opens string // what Flink looks into
	for _, p := range []string{"lang", "lang.invoke", "net", "nio", "text", "time", "util", "util.concurrent"} {
		opens += "--add-opens=java.base/java." + p + "=ALL-UNNAMED "
	}
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	java := []string{"-Xmx512m", "-XX:ActiveProcessorCount=2", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
		"-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-cp", filepath.Join("target", "classes") + string(os.PathListSeparator) + string(classpath)}
	cmd := exec.CommandContext(ctx, "java", slices.Concat(java, []string{main}, args)...)
	cmd.Dir = jobs
	cmd.Env = append(os.Environ(), "JDK_JAVA_OPTIONS="+opens)
	cmd.Stdin = strings.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	began := time.Now()
	err = cmd.Run()
	t.Logf("%s ran %s", main, time.Since(began).Round(100*time.Millisecond))
	if err != nil {
		t.Fatalf("running %s: %v\n%s", main, err, stderr.String())
	}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("log of %s:\n%s", main, stderr.String())
		}
	})
	var rows []T
	for line := range strings.Lines(stdout.String()) {
		var row T
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%s printed %q: %v", main, line, err)
		}
		rows = append(rows, row)
	}
	return rows
}
