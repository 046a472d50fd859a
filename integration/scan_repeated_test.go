//go:build integration

package integration

import (
	"strings"
	"syscall"
	"testing"
	"time"
)

// Without transactions the program is killed three times while it scans an account that changes, and paused for longer
// than its session while another one delivers the rest; then it wakes up. Rows may be repeated, but the topic is the
// account.
func TestScanAtLeastOnce(t *testing.T) {
	t.Parallel()
	s, settings := newScanned(t, 5000)
	name, topic := names(t, shared.KafkaBrokers, -1)
	rows := newScanRows()
	r := &repaired{scanned: s, table: newBlobTable(), settings: append(settings, "NAME="+name, "TOPIC="+topic,
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","), "INITIAL_SCAN=yes", "DELIVERY=at_least_once",
		"SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "POLL_INTERVAL=200ms", "DEBUG=txn_records=200")}
	r.c = consume(t, shared.KafkaBrokers, topic, r.table, rows)
	s.change(300)
	s.publish(t, true)
	s.next(t)
	stop := s.keep(t)
	begin := func() *program {
		noted := rows.n
		s.allowed.Store(s.asked.pages.Load() + 12)
		p := start(t, []string{"run"}, r.settings...)
		r.c.until(t, time.Minute, "more rows", func() bool { return rows.n > noted })
		return p
	}
	for range 3 {
		p := begin()
		p.signal(syscall.SIGKILL)
		<-p.done
	}
	paused := begin()
	eventually(t, time.Minute, "it has leases to lose", func() bool {
		return strings.Contains(paused.log.String(), "leases assigned")
	})
	paused.signal(syscall.SIGSTOP)
	if rows.feed {
		t.Fatal("the scan was over before the pause")
	}
	s.allowed.Store(0)
	other := start(t, []string{"run"}, r.settings...)
	r.c.until(t, time.Minute, "events behind the rows", func() bool { return rows.feed })
	stop()
	r.advance(t)
	paused.signal(syscall.SIGCONT)
	eventually(t, time.Minute, "it hears that its leases are lost", func() bool {
		return strings.Contains(paused.log.String(), `"lost":true`)
	})
	r.advance(t)
	for _, p := range []*program{paused, other} {
		p.signal(syscall.SIGTERM)
		if code := p.wait(t, 20*time.Second); code != 0 {
			t.Errorf("exit code %d", code)
		}
	}
	r.c.drain(t)
	t.Logf("%d rows of %d keys, %d of them repeated", rows.n, len(rows.rows), rows.n-len(rows.rows))
	r.compare(t, r.table)
	if scan := r.status(t).Scan; scan.State != "complete" {
		t.Errorf("%+v", scan)
	}
	verb(t, "verify --feed --account --wait 10s", r.settings)
}
