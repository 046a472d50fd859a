//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"blobfeed/integration/consumers/hours"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// Consumers read what the bridge writes, in each form, as docs/consumers.md shows it: the bridge is killed on the way,
// and the topics hold a foreign transaction that was aborted. Every job finds what the feed holds, and gives out
// nothing that depends on completeness before a marker says so.
func TestConsumers(t *testing.T) {
	t.Parallel()
	build := make(chan error, 1)
	go func() { build <- buildJobs() }()

	dir := t.TempDir()
	var events []feedsim.Event
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), jobFeed, func(e feedsim.Event) {
		if e.State {
			events = append(events, e)
		}
	}); err != nil {
		t.Fatal(err)
	}
	topics := make([]string, len(forms()))
	t.Run("bridge", func(t *testing.T) {
		for i, f := range forms() {
			t.Run(f.name, func(t *testing.T) {
				t.Parallel()
				topics[i] = f.deliver(t, dir, events)
			})
		}
	})
	if t.Failed() {
		return
	}
	if err := <-build; err != nil {
		t.Fatal(err)
	}
	topic := map[string]string{} // by form
	for i, f := range forms() {
		topic[f.name] = topics[i]
	}
	brokers := strings.Join(shared.KafkaBrokers, ",")

	t.Run("sql", func(t *testing.T) {
		t.Parallel()
		downloads := topic["json"] + ".downloads"
		createTopic(t, downloads, 1)
		joined := download(t, downloads, events)
		scripts, err := filepath.Glob("consumers/sql/*.sql")
		if err != nil {
			t.Fatal(err)
		}
		args := []string{"localhost:9092=" + brokers, "http://localhost:8081=" + shared.SchemaRegistryURL,
			"'downloads'='" + downloads + "'"}
		for of, shown := range map[string]string{"json": "blob-changes", "avro": "blob-avro",
			"enriched": "blob-enriched", "table": "blob-table"} {
			args = append(args, fmt.Sprintf("'%s'='%s'", shown, topic[of]))
		}
		for i := range scripts {
			scripts[i] = strings.TrimPrefix(scripts[i], "consumers/")
		}
		rows := map[string][]sqlRow{}
		for _, row := range runJob[sqlRow](t, "", "Sql", append(scripts, args...)...) {
			rows[row.Script] = append(rows[row.Script], row)
		}
		for _, script := range scripts {
			t.Run(script, func(t *testing.T) {
				switch rows := rows[script]; script {
				case "sql/windows.sql", "sql/avro-windows.sql":
					compareHours(t, rows, events)
				case "sql/asof.sql":
					got := map[string]string{}
					for _, row := range rows {
						got[probe{row.Path, row.TS}.String()] = row.EventID
					}
					equal(t, got, joined)
				default:
					equal(t, state(rows), latest(events))
				}
			})
		}
	})

	for _, format := range []struct{ name, plain, text string }{{"json", "json", "json"},
		{"avro", "avro", "text-avro"}} {
		var registry []string // the last argument of jobs that read Avro
		if format.name == "avro" {
			registry = []string{shared.SchemaRegistryURL}
		}
		t.Run("streams: latest state and join: "+format.name, func(t *testing.T) {
			t.Parallel()
			topic := topic[format.text]
			owners := topic + ".owners"
			createTopic(t, owners, partitions)
			live, want, lines := latest(events), map[string]string{}, &strings.Builder{}
			for i, path := range slices.Sorted(maps.Keys(live)) {
				if i%3 > 0 { // the others have no owner, and are left out
					fmt.Fprintf(lines, "%s\tteam-%d\n", path, i%7)
					want[path] = fmt.Sprintf("%s of team-%d", live[path], i%7)
				}
			}
			for _, e := range events {
				if live[e.Key] == "" { // who keeps one that was deleted, finds its owner
					fmt.Fprintf(lines, "%s\tteam-0\n", e.Key)
				}
			}
			runJob[struct{}](t, lines.String(), "Owners", brokers, owners)
			got := map[string]string{}
			for _, row := range runJob[struct {
				Path, Owner string
				EventID     string `json:"event_id"`
			}](t, "", "LatestState", append([]string{brokers, topic + ".latest-state", topic, owners},
				registry...)...) {
				got[row.Path] = row.EventID + " of " + row.Owner
			}
			equal(t, got, want)
		})

		t.Run("streams: complete hours: "+format.name, func(t *testing.T) {
			t.Parallel()
			topic := topic[format.plain]
			complete := topic + ".hours"
			createTopic(t, complete, 1)
			runJob[struct{}](t, "", "CompleteHours",
				append([]string{brokers, topic + ".complete-hours", topic, fmt.Sprint(partitions), complete},
					registry...)...)
			got, want := map[string]released{}, map[string]released{}
			for _, r := range read(t, shared.KafkaBrokers, complete) {
				var hour struct{ Begin, Changes, Resolved int64 }
				if err := json.Unmarshal(r.Value, &hour); err != nil {
					t.Fatal(err)
				}
				begin := time.UnixMilli(hour.Begin).UTC().String()
				if got[begin].count > 0 {
					t.Errorf("the hour %s comes twice", begin)
				}
				got[begin] = released{hour.Changes, hour.Resolved - 1}
			}
			for _, e := range events {
				hour := eventTime(e).Truncate(time.Hour)
				if mark, complete := coveredBy(hour.Add(time.Hour)); complete {
					want[hour.String()] = released{want[hour.String()].count + 1, mark}
				}
			}
			equal(t, got, want)
		})

		t.Run("datastream: windows closed by markers: "+format.name, func(t *testing.T) {
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
			}](t, "", "Windows", append([]string{brokers, topic[format.plain], fmt.Sprint(width.Minutes())},
				registry...)...) {
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
	}

	t.Run("connect: rows unwrapped", func(t *testing.T) {
		t.Parallel()
		got := map[string]string{}
		deleted := 0
		for _, row := range runJob[struct {
			Path    string
			EventID string `json:"event_id"`
			Op      string `json:"__op"`
			Deleted string `json:"__deleted"`
		}](t, "", "Unwrap", "connect/sink.properties", brokers, topic["schema"]) {
			if row.Deleted == "true" {
				delete(got, row.Path)
				deleted++
			} else {
				got[row.Path] = row.EventID
			}
			if (row.Op == "d") != (row.Deleted == "true") {
				t.Fatalf("%+v", row)
			}
		}
		equal(t, got, latest(events))
		for _, e := range events {
			if e.Delete {
				deleted--
			}
		}
		if deleted != 0 {
			t.Errorf("%d deletions too many", deleted)
		}
	})

	t.Run("connect: rows unwrapped, deletions as null values", func(t *testing.T) {
		t.Parallel()
		const mode = "handling.mode="
		properties, err := os.ReadFile("consumers/connect/sink.properties")
		if err != nil {
			t.Fatal(err)
		}
		settings := strings.Replace(string(properties), mode+"rewrite", mode+"tombstone", 1)
		file := filepath.Join(t.TempDir(), "sink.properties")
		if err := os.WriteFile(file, []byte(settings), 0o644); err != nil {
			t.Fatal(err)
		}
		got, of := map[string]string{}, map[string]string{} // by key
		for _, row := range runJob[struct {
			Key, Path *string
			EventID   string `json:"event_id"`
		}](t, "", "Unwrap", file, brokers, topic["schema"]) {
			if row.Path == nil {
				delete(got, of[*row.Key])
			} else {
				of[*row.Key] = *row.Path
				got[*row.Path] = row.EventID
			}
		}
		equal(t, got, latest(events))
	})

	t.Run("go: complete hours", func(t *testing.T) {
		t.Parallel()
		got, want := map[string]string{}, map[string]string{} // by event the hour
		buffer := hours.New(partitions, hours.Checkpoint{})
		c := consume(t, shared.KafkaBrokers, topic["json"])
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
}
