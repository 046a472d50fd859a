//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"slices"
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
	peak      int64 // the largest resident size of an instance
}

// until kills instances, and starts them again, until the status is what cond wants. The kills become rarer: each of
// them costs a part of what was done, and the machine may be slow.
func (r *trio) until(t *testing.T, what string, cond func(*status.Status) bool) {
	t.Helper()
	limit := time.Now().Add(20 * time.Minute)
	for n, next := 0, 0; ; n++ {
		for i, p := range r.instances {
			if p == nil {
				instance := fmt.Sprintf("INSTANCE=%s-%d-%d", r.name, i, r.kills)
				r.instances[i] = start(t, []string{"run"}, append(r.settings, instance)...)
			}
		}
		time.Sleep(time.Duration(500+r.rng.IntN(1500)) * time.Millisecond) // the pace of the kills
		if n == next {
			next += 1 + n/2
			victim := r.rng.IntN(len(r.instances))
			r.measure()
			r.instances[victim].signal(syscall.SIGKILL)
			<-r.instances[victim].done
			r.instances[victim], r.kills = nil, r.kills+1
		}
		p := start(t, []string{"status", "--output", "json"}, r.settings...)
		var s status.Status
		if p.wait(t, time.Minute) == 0 && json.Unmarshal([]byte(p.log.String()), &s) == nil && cond(&s) {
			return
		}
		if time.Now().After(limit) {
			t.Fatalf("still not: %s\n%+v", what, s.Scan)
		}
	}
}

func (r *trio) measure() {
	for _, p := range r.instances {
		if p == nil {
			continue
		}
		if size, ok := p.high(); ok {
			r.peak = max(r.peak, size)
		}
	}
}

// grow adds partitions to all topics of records that there are.
func (r *trio) grow(t *testing.T) {
	t.Helper()
	admin := kadm.NewClient(client(t, shared.KafkaBrokers))
	if _, err := admin.CreatePartitions(t.Context(), 3, r.topics(t)...); err != nil {
		t.Fatal(err)
	}
}

// topics returns those of records.
func (r *trio) topics(t *testing.T) []string {
	t.Helper()
	all, err := kadm.NewClient(client(t, shared.KafkaBrokers)).ListTopics(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(all.Names(), func(name string) bool {
		return !strings.HasPrefix(name, r.name+".copy") || strings.HasSuffix(name, ".resolved")
	})
}

// copies are the forms in which TestScanOfEverything writes its topic, or a topic for each container.
var copies = []struct{ name, topic, settings string }{
	{"json", ".copy", ""},
	{"table", ".copy", "PRESET=table"},
	{"avro", ".copy", "FORMAT=avro"},
	{"container", ".copy.{container}", ""},
}

// Three instances scan an account that changes, and are killed again and again, from the first moment on. The topics
// get partitions meanwhile. Afterwards containers are dropped, for which the feed has no events, and some are made
// again; a sweep repairs the topics, with kills, too. Then they are the account, for verify and for a consumer that
// takes the highest updated of each key. Without SCAN_BLOBS, each form has one delivery; 1000000 takes some minutes for
// each.
func TestScanOfEverything(t *testing.T) {
	blobs, all := 5_000, os.Getenv("SCAN_BLOBS") != ""
	if all {
		blobs = scanBlobs(t)
	}
	for i, form := range copies {
		for j, delivery := range []string{"exactly_once", "at_least_once"} {
			if !all && i%2 != j {
				continue
			}
			t.Run(form.name+"/"+delivery, func(t *testing.T) {
				scanEverything(t, blobs, delivery, form.topic, strings.Fields(form.settings)...)
			})
		}
	}
}

func scanEverything(t *testing.T, blobs int, delivery, topic string, form ...string) {
	s, settings := newScanned(t, blobs)
	name, _ := names(t, shared.KafkaBrokers, -1)
	settings = slices.Concat(settings, form, []string{"NAME=" + name, "TOPIC=" + name + topic,
		"KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ","), "INITIAL_SCAN=yes", "DELIVERY=" + delivery,
		"SESSION_TIMEOUT=1s", "COMMIT_INTERVAL=100ms", "POLL_INTERVAL=200ms", "OFFSETS_LEASES=4",
		"DEBUG=txn_records=5000,scan_round=2s", "GOMEMLIMIT=256MiB"})
	if slices.Contains(form, "FORMAT=avro") {
		settings = append(settings, "REGISTRY_URL="+shared.SchemaRegistryURL)
	}
	r := &trio{scanned: s, name: name, settings: settings}
	s.change(1000)
	s.publish(t, true)
	s.next(t)
	stop := s.keep(t)
	began := time.Now()
	// Without transactions, a new topic gets no partitions before its first rows are committed: docs/delivery.md.
	late := topic != copies[0].topic && delivery == "at_least_once"
	r.until(t, "the scan has rows", func(now *status.Status) bool { return now.Scan != nil && now.Scan.Rows > 0 })
	if !late {
		r.grow(t)
	}
	first := ""
	r.until(t, "the scan is complete", func(now *status.Status) bool {
		if now.Scan == nil || now.Scan.State != "complete" {
			return false
		}
		first = now.Scan.ID
		return true
	})
	if late {
		r.grow(t)
	}
	rows := time.Since(began).Round(time.Second)
	t.Logf("the rows took %s, with %d kills; %s", rows, r.kills, &s.asked)
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
	r.measure()
	for _, p := range r.instances {
		if p != nil {
			p.signal(syscall.SIGTERM)
			p.wait(t, time.Minute)
		}
	}
	t.Logf("%d blobs: all took %s, with %d kills, %.0f MB at most; %s", blobs, time.Since(began).Round(time.Second),
		r.kills, float64(r.peak)/1e6, &s.asked)
	if r.peak > 300e6 {
		t.Errorf("the largest resident size of an instance is %d bytes, want at most 300 MB", r.peak)
	}
	began = time.Now()
	// The limit is for instances. Verify needs memory for each key and event: docs/cli.md.
	unlimited := slices.DeleteFunc(slices.Clone(r.settings), func(s string) bool {
		return strings.HasPrefix(s, "GOMEMLIMIT=")
	})
	p := start(t, []string{"verify", "--feed", "--account", "--wait", "10s"}, unlimited...)
	peak := p.largest(t)
	if code := p.wait(t, time.Minute); code != 0 {
		t.Errorf("verify: exit code %d:\n%s", code, p.log)
	}
	t.Logf("verify --feed --account took %s, %.0f MB", time.Since(began).Round(time.Second), float64(peak)/1e6)
	c := newCopied(t, first, delivery == "exactly_once")
	for _, topic := range r.topics(t) {
		c.read(t, topic)
	}
	s.compare(t, c.table())
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
