//go:build integration

package integration

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"blobfeed/integration/stack"
	"blobfeed/internal/testing/feedsim"
)

// The program stays within its memory while it catches up, also where filters drop nearly every event: those that are
// read count, not only those that are written, and where there are many shards (I9). MEMORY_EVENTS is how many events
// the filtered feed has.
func TestMemory(t *testing.T) {
	events := 1_000_000
	if text := os.Getenv("MEMORY_EVENTS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			t.Fatalf("MEMORY_EVENTS: %v", err)
		}
		events = n
	}
	large, small := writeLarge(t, events, 8), writeLarge(t, events/10, 8)
	wide := writeLarge(t, 200_000, 64)
	for _, c := range []struct {
		what     string
		feed     string
		events   int
		most     int64 // resident bytes
		settings []string
	}{
		{"999 of 1,000 events are filtered out", large, events, 300e6, []string{"CONTAINERS=c007", "GOMEMLIMIT=256MiB"}},
		{"keys only", small, events / 10, 300e6, []string{"ENVELOPE=key_only", "GOMEMLIMIT=256MiB"}},
		{"every event", small, events / 10, 300e6, []string{"GOMEMLIMIT=256MiB"}},
		{"no limit is set", wide, 200_000, 180e6, nil},
		{"64 shards", wide, 200_000, 150e6, []string{"GOMEMLIMIT=128MiB"}},
	} {
		t.Run(c.what, func(t *testing.T) {
			name, topic := names(t, shared.KafkaBrokers, -1)
			p := start(t, []string{"run"},
				append([]string{"NAME=" + name, "TOPIC=" + topic, "SOURCE_URL=" + fileURL(t, c.feed),
					"KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ",")}, c.settings...)...)
			began := time.Now()
			eventually(t, 15*time.Minute, "the feed is delivered",
				func() bool { return p.status(t).SinceStart.Segments == largeSegments })
			took := time.Since(began)
			total := p.status(t).SinceStart
			peak := p.peak(t)
			t.Logf("%d events read, %d records: largest resident size %.0f MB, %.1f s, %.0f events/s",
				total.Events, total.Records, float64(peak)/1e6, took.Seconds(), float64(total.Events)/took.Seconds())
			if total.Events != c.events {
				t.Errorf("%d events read, want %d", total.Events, c.events)
			}
			if peak > c.most {
				t.Errorf("the largest resident size is %d bytes, want at most %d", peak, c.most)
			}
			p.signal(syscall.SIGTERM)
			if code := p.wait(t, time.Minute); code != 0 {
				t.Errorf("exit code %d", code)
			}
		})
	}
}

const largeSegments = 10

// writeLarge writes a feed whose events are spread evenly over 1,000 containers.
func writeLarge(t *testing.T, events, shards int) (dir string) {
	t.Helper()
	spec := feedsim.Spec{Seed: 1, Segments: largeSegments, EventsPerSegment: events / largeSegments,
		Shards: shards, Blobs: 50_000}
	for i := range 1000 {
		spec.Containers = append(spec.Containers, fmt.Sprintf("c%03d", i))
	}
	dir = t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(dir), spec, nil); err != nil {
		t.Fatal(err)
	}
	return dir
}

// peak returns the largest resident size that the program has had, in bytes.
func (p *program) peak(t *testing.T) int64 {
	t.Helper()
	size, ok := p.high()
	if !ok {
		t.Fatal("the status of the process has no VmHWM")
	}
	return size
}

// largest returns the peak of a program that ends by itself. What wait4 reports includes the memory of this process,
// which the child shares until it executes the program.
func (p *program) largest(t *testing.T) (size int64) {
	t.Helper()
	for tick := time.NewTicker(50 * time.Millisecond); ; {
		if now, ok := p.high(); ok {
			size = now
		}
		select {
		case <-tick.C:
		case <-p.done:
			tick.Stop()
			return size
		}
	}
}

func (p *program) high() (bytes int64, ok bool) {
	size, err := stack.LargestOf(p.cmd.Process.Pid) // an error, when it has ended
	return int64(size), err == nil
}
