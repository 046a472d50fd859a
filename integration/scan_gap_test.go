//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/status"
	"blobfeed/internal/testing/feedsim"
)

// repaired is a bridge whose feed has lost history, with the table that its topic makes.
type repaired struct {
	*scanned
	settings []string
	c        *consumer
	table    *blobTable
}

// lose starts a bridge, and lets retention remove segments with writes and deletions while it cannot read them. It
// returns when the bridge has the segment behind them.
func lose(t *testing.T, onGap string) *repaired {
	t.Helper()
	s, settings := newScanned(t, 3000)
	name, topic := names(t, shared.KafkaBrokers, -1)
	r := &repaired{scanned: s, table: newBlobTable(), settings: append(settings, "NAME="+name,
		"TOPIC="+topic, "KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","), "INITIAL_SCAN=yes", "ON_GAP="+onGap,
		"COMMIT_INTERVAL=100ms", "POLL_INTERVAL=200ms", "DEBUG=scan_round=300ms")}
	r.c = consume(t, shared.KafkaBrokers, topic, r.table)
	start(t, []string{"run"}, r.settings...).ready(t)
	r.await(t, "the initial scan is complete", func(now *status.Status) bool {
		return now.Scan != nil && now.Scan.State == "complete"
	})
	r.advance(t)
	s.change(300)
	s.publish(t, false)
	s.down.Store(true)
	for range 2 {
		s.change(300)
		s.publish(t, false)
		s.next(t)
	}
	for hour := range s.hour {
		segment := hourOf(hour)
		s.files.Remove("idx/segments/" + segment)
		for shard := range 4 {
			s.files.Remove(fmt.Sprintf("log/%02d/%s/", shard, segment))
		}
	}
	s.down.Store(false)
	r.advance(t)
	return r
}

func hourOf(n int) string { return fmt.Sprintf("2026/01/01/%02d00", n) }

// advance changes the account, ends the segment, and waits until the bridge has completed it.
func (r *repaired) advance(t *testing.T) {
	t.Helper()
	ends := hourOf(r.hour)
	r.change(100)
	r.publish(t, false)
	r.next(t)
	r.await(t, ends+" is complete", func(now *status.Status) bool { return now.Position.Completed == ends })
}

// await reads the topic until the bridge's status is what cond wants.
func (r *repaired) await(t *testing.T, what string, cond func(*status.Status) bool) (now *status.Status) {
	t.Helper()
	eventually(t, time.Minute, what, func() bool {
		r.c.poll(t.Context(), 200*time.Millisecond)
		now = r.status(t)
		return cond(now)
	})
	return now
}

func (r *repaired) status(t *testing.T) *status.Status {
	t.Helper()
	var s status.Status
	if err := json.Unmarshal([]byte(statusOf(t, r.settings)), &s); err != nil {
		t.Fatal(err)
	}
	return &s
}

// done waits until the last scan, which is not the initial one, has ended.
func (r *repaired) done(t *testing.T) *status.Scan {
	t.Helper()
	return r.await(t, "the scan is over", func(now *status.Status) bool {
		return now.Scan != nil && !now.Scan.Initial && now.Scan.Ended != nil
	}).Scan
}

// right fails where the topic is not the account.
func (r *repaired) right(t *testing.T) {
	t.Helper()
	r.advance(t)
	r.c.drain(t)
	r.compare(t, r.table)
	verb(t, "verify --account --wait 10s", r.settings)
}

// Retention removes segments with writes and deletions that nobody has read. The bridge repairs the topic by itself,
// without a restart.
func TestRescanRepairsTopic(t *testing.T) {
	t.Parallel()
	r := lose(t, "rescan")
	scan := r.done(t)
	if p := r.status(t).Position; scan.State != "complete" || !scan.Sweep || scan.Deleted == 0 || p.Gaps != 1 {
		t.Errorf("%+v after %d gaps", scan, p.Gaps)
	}
	t.Logf("%d rows, %d deletions; %s", scan.Rows, scan.Deleted, &r.asked)
	if text := verb(t, "status", r.settings); !strings.Contains(text, "scan with sweep "+scan.ID+": complete") {
		t.Error(text)
	}
	r.right(t)
}

// With ON_GAP=continue the topic stays wrong until an operator asks for a scan with a sweep.
func TestSweepRepairsTopic(t *testing.T) {
	t.Parallel()
	r := lose(t, "continue")
	wrong := start(t, []string{"verify", "--account", "--wait", "1ms"}, r.settings...)
	if code := wrong.wait(t, time.Minute); code != 4 || r.status(t).Position.Gaps != 1 {
		t.Fatalf("verify: exit code %d:\n%s", code, wrong.log)
	}
	if said := verb(t, "scan --sweep", r.settings); !strings.Contains(said, "requested") ||
		!strings.Contains(said, "an instance carries it out") {
		t.Error(said)
	}
	if scan := r.done(t); scan.State != "complete" || scan.Deleted == 0 {
		t.Errorf("%+v", scan)
	}

	r.held.Store(true)
	verb(t, "scan --prefix data/", r.settings) // a container would be asked for, and the account is held
	active := r.await(t, "the scan is active", func(now *status.Status) bool { return now.Scan.State == "active" })
	if text := verb(t, "status", r.settings); !strings.Contains(text, "scan "+active.Scan.ID+": listing, 0 rows") {
		t.Error(text)
	}
	r.refused(t, "scan", "is under way")
	if said := verb(t, "scan --cancel", r.settings); !strings.Contains(said, "cancelled") {
		t.Error(said)
	}
	r.held.Store(false)
	if scan := r.done(t); scan.State != "cancelled" || scan.Prefix != "data/" {
		t.Errorf("%+v", scan)
	}
	r.refused(t, "scan --cancel", "no scan is under way")
	configure(t, shared.KafkaBrokers, r.c.topic, "retention.ms", "86400000")
	r.refused(t, "scan --sweep", "does not keep every key: it has cleanup.policy=delete and retention.ms=86400000")
	configure(t, shared.KafkaBrokers, r.c.topic, "retention.ms", "-1")
	r.right(t)
}

// A bridge that cannot scan says why, and one that can takes the request.
func TestScanRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), feedsim.Spec{Segments: 1}, nil); err != nil {
		t.Fatal(err)
	}
	s, account := newScanned(t, 10)
	s.next(t)
	for _, c := range []struct {
		name, why string
		settings  []string
	}{
		{"directory", "a directory has no account to list", []string{"SOURCE_URL=" + fileURL(t, dir)}},
		{"key_only", "say which keys are deleted", append(account[:len(account):len(account)], "ENVELOPE=key_only")},
		{"shared", "other accounts", append(account[:len(account):len(account)], "TOPIC_SHARED=true")},
		{"key_only with tombstones", "", append(account[:len(account):len(account)], "ENVELOPE=key_only", "DELETES=tombstone")},
	} {
		t.Run(c.name, func(t *testing.T) {
			name, topic := names(t, shared.KafkaBrokers, -1)
			r := &repaired{settings: append(c.settings, "NAME="+name, "TOPIC="+topic, "KAFKA_BROKERS="+
				strings.Join(shared.KafkaBrokers, ","))}
			r.refused(t, "scan", "no bridge of this name has run")
			runOnce(t, r.settings...)
			if c.why == "" {
				if said := verb(t, "scan --sweep", r.settings); !strings.Contains(
					said,
					"the next start carries it out",
				) {
					t.Error(said)
				}
				return
			}
			r.refused(t, "scan --sweep", c.why)
		})
	}
}

// refused runs a verb, which must end with code 1 and say why.
func (r *repaired) refused(t *testing.T, args, why string) {
	t.Helper()
	p := start(t, strings.Fields(args), r.settings...)
	if code := p.wait(t, time.Minute); code != 1 || !strings.Contains(p.log.String(), why) {
		t.Errorf("%s: exit code %d, want %q:\n%s", args, code, why, p.log)
	}
}
