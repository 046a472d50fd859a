//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/internal/status"
	"blobfeed/source/inventory"
)

// trio is three instances that are killed again and again.
type trio struct {
	*scanned
	name      string
	settings  []string
	instances [3]*program
	kills     int
}

// until kills instances, and starts them again, until the status is what cond wants.
func (r *trio) until(t *testing.T, what string, cond func(*status.Status) bool) {
	t.Helper()
	limit := time.Now().Add(20 * time.Minute)
	for n := 0; ; n++ {
		for i, p := range r.instances {
			if p == nil {
				instance := fmt.Sprintf("INSTANCE=%s-%d-%d", r.name, i, r.kills)
				r.instances[i] = start(t, []string{"run"}, append(r.settings, instance)...)
			}
		}
		time.Sleep(time.Duration(500+r.rng.IntN(1500)) * time.Millisecond) // the pace of the kills
		p := start(t, []string{"status", "--output", "json"}, r.settings...)
		var s status.Status
		if p.wait(t, time.Minute) == 0 && json.Unmarshal([]byte(p.log.String()), &s) == nil && cond(&s) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("still not: %s\n%+v", what, s.Scan)
		}
		if n%2 == 0 { // else nothing would get on where a group takes a second to agree
			victim := r.rng.IntN(len(r.instances))
			r.instances[victim].signal(syscall.SIGKILL)
			<-r.instances[victim].done
			r.instances[victim], r.kills = nil, r.kills+1
		}
	}
}

// Three instances scan an account that changes, and are killed again and again. The topic gets partitions meanwhile.
// Afterwards containers are dropped, for which the feed has no events, and some are made again; a sweep repairs the
// topic, with kills, too. Then the topic is the account, twice. SCAN_BLOBS=1000000 takes some minutes for each.
func TestScanOfEverything(t *testing.T) {
	blobs := 20_000
	if os.Getenv("SCAN_BLOBS") != "" {
		blobs = scanBlobs(t)
	}
	for _, delivery := range []string{"exactly_once", "at_least_once"} {
		t.Run(delivery, func(t *testing.T) { scanEverything(t, blobs, delivery) })
	}
}

func scanEverything(t *testing.T, blobs int, delivery string) {
	s, settings := newScanned(t, blobs)
	name, topic := names(t, shared.KafkaBrokers, -1)
	r := &trio{scanned: s, name: name, settings: append(settings, "NAME="+name, "TOPIC="+topic,
		"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","), "INITIAL_SCAN=yes", "DELIVERY="+delivery,
		"SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "POLL_INTERVAL=200ms", "OFFSETS_LEASES=4",
		"DEBUG=txn_records=5000,scan_round=2s", "GOMEMLIMIT=256MiB")}
	s.change(1000)
	s.publish(t, true)
	s.next(t)
	stop := s.keep(t)
	began := time.Now()
	r.until(t, "the scan has rows", func(now *status.Status) bool { return now.Scan != nil && now.Scan.Rows > 0 })
	admin := kadm.NewClient(client(t, shared.KafkaBrokers))
	if _, err := admin.CreatePartitions(t.Context(), 3, topic); err != nil {
		t.Fatal(err)
	}
	r.until(t, "the scan is complete", func(now *status.Status) bool {
		return now.Scan != nil && now.Scan.State == "complete"
	})
	t.Logf("the rows took %s, with %d kills; %s", time.Since(began).Round(time.Second), r.kills, &s.asked)
	stop()
	for range 2 {
		r.hourPasses(t)
	}
	for i := range 6 {
		s.account.Drop(fmt.Sprintf("container-%02d", i))
	}
	for i := range 3 { // made again, with other blobs
		for b := range 50 {
			blob := inventory.Blob{Name: fmt.Sprintf("again-%d", b), Length: int64(b)}
			s.account.Put(fmt.Sprintf("container-%02d", i), blob)
		}
	}
	r.hourPasses(t)
	verb(t, "scan --sweep", r.settings)
	stop = s.keep(t)
	r.until(t, "the sweep is complete", func(now *status.Status) bool {
		return now.Scan != nil && !now.Scan.Initial && now.Scan.State == "complete" && now.Scan.Deleted > 0
	})
	stop()
	for range 2 {
		r.hourPasses(t)
	}
	for range 2 {
		p := start(t, []string{"verify", "--feed", "--account", "--wait", "10s"}, r.settings...)
		if code := p.wait(t, 10*time.Minute); code != 0 {
			t.Errorf("verify: exit code %d:\n%s", code, p.log)
		}
	}
	t.Logf("all took %s, with %d kills; %s", time.Since(began).Round(time.Second), r.kills, &s.asked)
	for _, p := range r.instances {
		if p != nil {
			p.signal(syscall.SIGTERM)
			p.wait(t, time.Minute)
		}
	}
}

// hourPasses changes the account, ends a segment, and waits until it is complete.
func (r *trio) hourPasses(t *testing.T) {
	t.Helper()
	ends := hourOf(r.hour)
	r.change(100)
	r.publish(t, false)
	r.next(t)
	r.until(t, ends+" is complete", func(now *status.Status) bool { return now.Position.Completed >= ends })
}
