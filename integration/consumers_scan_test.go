//go:build integration

package integration

import (
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// scannedForm is a bridge that delivers an account in a form, to a topic of its own.
type scannedForm struct {
	*repaired
	rows  *scanRows
	topic string
}

// interrupt starts a bridge, and kills it when it has written some of the rows.
func (s *scanned) interrupt(t *testing.T, f form, settings []string) *scannedForm {
	t.Helper()
	name, topic := names(t, shared.KafkaBrokers, -1)
	if f.name == "table" {
		topic = name + ".table" // the bridge creates it: it is compacted
	}
	b := &scannedForm{
		rows:  newScanRows(),
		topic: topic,
		repaired: &repaired{scanned: s, settings: slices.Concat(
			settings,
			f.settings,
			[]string{"NAME=" + name, "TOPIC=" + topic, "KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ","),
				"INITIAL_SCAN=yes", "SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "POLL_INTERVAL=200ms"},
		)},
	}
	b.c = consume(t, shared.KafkaBrokers, topic, b.rows)
	s.allowed.Store(s.asked.pages.Load() + 20)
	p := start(t, []string{"run"}, b.settings...)
	b.c.until(t, time.Minute, "rows", func() bool { return b.rows.n > 0 })
	p.signal(syscall.SIGKILL)
	<-p.done
	s.allowed.Store(0)
	return b
}

// Tables of Kafka Streams and Flink SQL, over topics that begin with a scan, are the account. The bridges are killed
// during the scan, and the account changes all the time.
func TestConsumersOfScan(t *testing.T) {
	t.Parallel()
	build := make(chan error, 1)
	go func() { build <- buildJobs() }()
	s, settings := newScanned(t, 3000)
	s.change(500)
	s.publish(t, true)
	s.next(t)
	stop := s.keep(t)
	bridges := map[string]*scannedForm{}
	for _, f := range forms() {
		if f.name == "table" || f.name == "avro" || f.name == "text-avro" {
			bridges[f.name] = s.interrupt(t, f, settings)
		}
	}
	for name, b := range bridges {
		start(t, []string{"run"}, b.settings...)
		b.c.until(t, time.Minute, name+": events behind the rows", func() bool { return b.rows.feed })
	}
	stop()
	for range 3 {
		s.change(200)
		s.publish(t, false)
		s.next(t)
	}
	for name, b := range bridges {
		last := hourOf(s.hour - 1)
		eventually(t, time.Minute, name+": "+last+" is complete", func() bool {
			b.c.poll(t.Context(), 200*time.Millisecond)
			return b.status(t).Position.Completed == last
		})
		b.c.drain(t)
		b.c.check(t)
		t.Logf("%s: %d rows, %d records", name, b.rows.n, b.c.data)
	}
	if err := <-build; err != nil {
		t.Fatal(err)
	}
	brokers := strings.Join(shared.KafkaBrokers, ",")
	lengths, etags := map[string]int64{}, map[string]string{}
	for path, b := range s.account.Blobs() {
		lengths[path], etags[path] = b.Length, b.ETag
	}

	t.Run("sql", func(t *testing.T) {
		t.Parallel()
		got := map[string]map[string]int64{}
		events := 0
		for _, row := range runJob[sqlRow](t, "", "Sql", "sql/table.sql", "sql/avro-state.sql", "localhost:9092="+brokers,
			"http://localhost:8081="+shared.SchemaRegistryURL, "'blob-table'='"+bridges["table"].topic+"'",
			"'blob-avro'='"+bridges["avro"].topic+"'") {
			table := got[row.Script]
			if table == nil {
				table = map[string]int64{}
				got[row.Script] = table
			}
			switch row.Kind {
			case "+I", "+U":
				table[row.Path] = row.Length
			case "-D":
				delete(table, row.Path)
			}
			if row.EventID != "" {
				events++
			}
		}
		for _, script := range []string{"sql/table.sql", "sql/avro-state.sql"} {
			t.Log(script)
			equal(t, got[script], lengths)
		}
		if events == 0 {
			t.Error("no row is of an event")
		}
	})
	type streamsRow struct{ Path, ETag, Owner string }
	t.Run("streams: a compacted topic", func(t *testing.T) {
		t.Parallel()
		topic, got := bridges["table"].topic, map[string]string{}
		for _, row := range runJob[streamsRow](t, "", "Table", brokers, topic+".table", topic) {
			got[row.Path] = row.ETag
		}
		equal(t, got, etags)
	})
	t.Run("streams: latest state and join", func(t *testing.T) {
		t.Parallel()
		topic, got, want := bridges["text-avro"].topic, map[string]string{}, map[string]string{}
		owners := topic + ".owners"
		createTopic(t, owners, partitions)
		var records []*kgo.Record
		for path, etag := range etags {
			owner := fmt.Sprintf("team-%d", len(records)%7)
			want[path] = etag + " of " + owner
			records = append(records, &kgo.Record{Topic: owners, Key: []byte(path), Value: []byte(owner)})
		}
		if err := client(t, shared.KafkaBrokers).ProduceSync(t.Context(), records...).FirstErr(); err != nil {
			t.Fatal(err)
		}
		for _, row := range runJob[streamsRow](t, "", "LatestState", brokers, topic+".latest-state", topic, owners,
			shared.SchemaRegistryURL) {
			got[row.Path] = row.ETag + " of " + row.Owner
		}
		equal(t, got, want)
	})
}
