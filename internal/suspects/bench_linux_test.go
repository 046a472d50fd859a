package suspects

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/testing/fakebroker"
)

// BenchmarkSweep compares the keys of one partition: each has a row of before the scan, and all but one of 1,000 have
// one of the scan. SWEEP_KEYS is how many there are. With SWEEP_BROKERS, the topic is on real brokers, and resident-MB
// is the largest resident size of the process, without what the brokers hold.
func BenchmarkSweep(b *testing.B) {
	keys := 100_000
	if text := os.Getenv("SWEEP_KEYS"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil {
			b.Fatal(err)
		}
		keys = n
	}
	client := []kgo.Opt{kgo.SeedBrokers(strings.Split(os.Getenv("SWEEP_BROKERS"), ",")...)}
	if os.Getenv("SWEEP_BROKERS") == "" {
		client = []kgo.Opt{kgo.SeedBrokers(fakebroker.New(b).ListenAddrs()...)}
	}
	name := fmt.Sprintf("sweep-%d", time.Now().UnixNano())
	cl, err := kgo.NewClient(append(client, kgo.MaxBufferedRecords(200_000), kgo.DefaultProduceTopic(name))...)
	if err != nil {
		b.Fatal(err)
	}
	admin := kadm.NewClient(cl)
	if _, err := admin.CreateTopic(b.Context(), 1, -1, nil, name); err != nil {
		b.Fatal(err)
	}
	value := []byte(`{"after": {"etag": "0x8DC0FFEE0FF1CE0", "path": "flat/data/part-000000000.parquet"}}`)
	for _, scan := range []string{"", "this"} {
		for i := range keys {
			r := &kgo.Record{Key: fmt.Appendf(nil, `["flat/data/part-%09d.parquet"]`, i), Value: value}
			if scan != "" {
				if i%1000 == 999 {
					continue
				}
				r.Headers = []kgo.RecordHeader{{Key: envelope.ScanHeader, Value: []byte(scan)}}
			}
			cl.Produce(b.Context(), r, func(_ *kgo.Record, err error) {
				if err != nil {
					b.Error(err)
				}
			})
		}
	}
	if err := cl.Flush(b.Context()); err != nil {
		b.Fatal(err)
	}
	cl.Close()
	enc := encoder(b)
	limit, _ := strconv.Atoi(os.Getenv("SWEEP_BYTES"))
	forgetLargest(b)
	b.ResetTimer()
	reads := 0
	for range b.N {
		found := 0
		p := &partition{client: append(client, kgo.WithHooks(readingHook(func() { reads++ }))), topic: name, encoder: enc,
			scan: "this", limit: cmp.Or(limit, defaultBytes)}
		err := p.find(context.Background(), func(some []Suspect, _ int64) error {
			found += len(some)
			return nil
		})
		if err != nil || found != keys/1000 {
			b.Fatalf("%d found, %v", found, err)
		}
	}
	b.ReportMetric(float64(reads)/float64(b.N), "reads/op")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(keys), "ns/key")
	b.ReportMetric(largestSize(b), "resident-MB")
}

// forgetLargest begins a new measurement of the largest resident size.
func forgetLargest(b *testing.B) {
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil {
		b.Log(err)
	}
}

func largestSize(b *testing.B) float64 {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	for line := range strings.Lines(string(status)) {
		if text, ok := strings.CutPrefix(line, "VmHWM:"); ok {
			kb, err := strconv.ParseFloat(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(text), "kB")), 64)
			if err != nil {
				b.Fatal(err)
			}
			return kb / 1000
		}
	}
	return 0
}
