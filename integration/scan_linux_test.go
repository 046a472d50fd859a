//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// scanBlobs is how many blobs the account of TestScan has; SCAN_BLOBS=1000000 takes some minutes.
func scanBlobs(t *testing.T) int {
	text := os.Getenv("SCAN_BLOBS")
	if text == "" {
		return 100_000
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// Three instances scan an account that changes, and are killed again and again. Afterwards the topic is the account, no
// row was lost or doubled, and verify agrees.
func TestScan(t *testing.T) {
	s, settings := newScanned(t, scanBlobs(t))
	name, topic := names(t, shared.KafkaBrokers, -1)
	settings = append(settings, "NAME="+name, "TOPIC="+topic, "KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"INITIAL_SCAN=yes", "SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "POLL_INTERVAL=200ms", "OFFSETS_LEASES=4",
		"DEBUG=txn_records=5000", "GOMEMLIMIT=256MiB")
	s.change(1000)
	s.publish(t, true)
	s.next(t)
	table := newBlobTable()
	rows := newScanRows()
	c := consume(t, shared.KafkaBrokers, topic, table, rows)
	stop := s.keep(t)
	began := time.Now()
	var instances [3]*program
	kills, peak := 0, int64(0)
	for !rows.feed {
		for i, p := range instances {
			if p == nil {
				instances[i] = start(
					t,
					[]string{"run"},
					append(settings, fmt.Sprintf("INSTANCE=%s-%d-%d", name, i, kills))...)
			}
		}
		c.poll(t.Context(), time.Duration(500+s.rng.IntN(1500))*time.Millisecond)
		if rows.feed {
			break
		}
		victim := s.rng.IntN(len(instances))
		peak = max(peak, instances[victim].peak(t))
		instances[victim].signal(syscall.SIGKILL)
		<-instances[victim].done
		instances[victim] = nil
		if kills++; kills > 200 {
			t.Fatalf("%d rows after %d kills", rows.n, kills)
		}
	}
	t.Logf("%d rows in %s, %d kills; %s", rows.n, time.Since(began).Round(time.Millisecond), kills, &s.asked)
	stop()
	for range 3 {
		s.change(100)
		s.publish(t, false)
		s.next(t)
	}
	eventually(t, 2*time.Minute, "all segments are complete", func() bool {
		c.poll(t.Context(), 100*time.Millisecond)
		return strings.Contains(statusOf(t, settings), `"completed":"2026/01/01/0300"`)
	})
	c.drain(t)
	c.check(t)
	s.compare(t, table)
	for i, p := range instances {
		if p != nil {
			peak = max(peak, p.peak(t))
			p.signal(syscall.SIGTERM)
			if code := p.wait(t, time.Minute); code != 0 {
				t.Errorf("instance %d: exit code %d", i, code)
			}
		}
	}
	t.Logf("largest resident size of an instance: %.0f MB", float64(peak)/1e6)
	if peak > 300e6 {
		t.Errorf("the largest resident size is %d bytes, want at most 300 MB", peak)
	}
	s.judge(t, topic, settings)
}

// judge lets the program compare the topic with the feed and the account. Both agree until a deletion gets lost and
// another one is made up.
func (s *scanned) judge(t *testing.T, topic string, settings []string) {
	t.Helper()
	began := time.Now()
	p := start(t, []string{"verify", "--feed", "--account", "--wait", "10s"}, settings...)
	peak := p.largest(t)
	if code := p.wait(t, 5*time.Minute); code != 0 {
		t.Errorf("verify: exit code %d:\n%s", code, p.log)
	}
	t.Logf("verify --feed --account took %s, %.0f MB", time.Since(began).Round(time.Millisecond), float64(peak)/1e6)
	s.account.Drop("container-00")
	const madeUp = `["flat/data/part-000009999.parquet"]`
	if err := client(t, shared.KafkaBrokers).ProduceSync(t.Context(), &kgo.Record{Topic: topic, Key: []byte(madeUp),
		Value: []byte(`{"after":null}`)}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	p = start(t, []string{"verify", "--account", "--wait", "1ms"}, settings...)
	if code := p.wait(t, 5*time.Minute); code != 4 || !strings.Contains(p.log.String(), `["container-00/`) ||
		!strings.Contains(p.log.String(), madeUp) {
		t.Errorf("verify: exit code %d:\n%s", code, p.log)
	}
}

// With only, the program exits with 0 behind the last row. It is an export of the account, in 256 MiB.
func TestScanOnly(t *testing.T) {
	blobs := scanBlobs(t)
	s, settings := newScanned(t, blobs)
	name, topic := names(t, shared.KafkaBrokers, -1)
	began, serving := time.Now(), cpuTime(t)
	p := start(t, []string{"run"}, append(settings, "NAME="+name, "TOPIC="+topic, "INITIAL_SCAN=only",
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","), "GOMEMLIMIT=256MiB")...)
	peak := p.largest(t)
	if code := p.wait(t, 5*time.Minute); code != 0 {
		t.Errorf("exit code %d", code)
	}
	took, used, perRow := time.Since(began), p.cmd.ProcessState, float64(blobs)*float64(time.Microsecond)
	took -= starting(t, p)
	t.Logf("%d rows in %s: %.0f rows/s, %.1f us CPU a row, and %.1f of the endpoint; %.0f MB at most; %s", blobs,
		took.Round(time.Millisecond), float64(blobs)/took.Seconds(), float64(used.UserTime()+used.SystemTime())/perRow,
		float64(cpuTime(t)-serving)/perRow, float64(peak)/1e6, &s.asked)
	if peak > 300e6 {
		t.Errorf("the largest resident size is %d bytes, want at most 300 MB", peak)
	}
	table, rows := newBlobTable(), newScanRows()
	c := consume(t, shared.KafkaBrokers, topic, table, rows)
	c.drain(t)
	c.check(t)
	if rows.n != blobs || rows.feed || c.marks != partitions {
		t.Errorf("%d rows, events %t, %d markers", rows.n, rows.feed, c.marks)
	}
	s.compare(t, table)
	if os.Getenv("SCAN_BLOBS") != "" {
		raw := rawRate(t, topic, blobs)
		t.Logf("a producer alone writes the same records at %.0f a second: ratio %.2f", raw,
			float64(blobs)/took.Seconds()/raw)
	}
}

// cpuTime returns what this process has used, which serves the account.
func cpuTime(t *testing.T) time.Duration {
	t.Helper()
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		t.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// starting returns how long a program took from its first log line to the scan it took up.
func starting(t *testing.T, p *program) time.Duration {
	t.Helper()
	var first, scan time.Time
	for line := range strings.Lines(p.log.String()) {
		var e struct {
			Time time.Time
			Msg  string
			Took time.Duration
		}
		if json.Unmarshal([]byte(line), &e) != nil {
			continue
		}
		if first.IsZero() {
			first = e.Time
		}
		if e.Msg == "the scan is over" {
			scan = e.Time.Add(-e.Took)
		}
	}
	if scan.IsZero() {
		t.Fatalf("no scan has ended:\n%s", p.log)
	}
	return scan.Sub(first)
}

// rawRate returns how many of the records of a topic a producer writes a second, from memory, in transactions as large
// as those of the program.
func rawRate(t *testing.T, topic string, n int) float64 {
	t.Helper()
	var records []*kgo.Record
	reader := client(t, shared.KafkaBrokers, kgo.ConsumeTopics(topic),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))
	for len(records) < n {
		reader.PollFetches(t.Context()).EachRecord(func(r *kgo.Record) { records = append(records, r) })
	}
	_, to := names(t, shared.KafkaBrokers, -1)
	writer := client(t, shared.KafkaBrokers, kgo.TransactionalID(to), kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.MaxBufferedRecords(100_000))
	began := time.Now()
	for chunk := range slices.Chunk(records, 50_000) {
		if err := writer.BeginTransaction(); err != nil {
			t.Fatal(err)
		}
		for _, r := range chunk {
			r.Topic = to
			writer.Produce(t.Context(), r, func(_ *kgo.Record, err error) {
				if err != nil {
					t.Error(err)
				}
			})
		}
		if err := writer.Flush(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := writer.EndTransaction(t.Context(), kgo.TryCommit); err != nil {
			t.Fatal(err)
		}
	}
	return float64(len(records)) / time.Since(began).Seconds()
}
