package azure

import (
	"context"
	"fmt"
	"net/http/httptest"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
)

// BenchmarkInventory lists a million blobs over HTTP, 600,000 of them under one flat prefix. Server and reader
// share the processor: cpu-ns/blob is what both take together.
func BenchmarkInventory(b *testing.B) {
	s := &account.Server{Account: account.New(nil)}
	account.Fill(s.Account, 1_000_000)
	srv := httptest.NewServer(s)
	defer srv.Close()
	requests := atomic.Int64{}
	store, err := New(Config{Endpoint: srv.URL + "/acct", Auth: "anonymous",
		Observe: func(string, int, time.Duration, int64, error) { requests.Add(1) }})
	if err != nil {
		b.Fatal(err)
	}
	v, err := store.Inventory()
	if err != nil {
		b.Fatal(err)
	}
	for _, n := range []int{1, 8} {
		b.Run(fmt.Sprint(n, "-requests"), func(b *testing.B) {
			requests.Store(0)
			before := processor()
			rows := atomic.Int64{}
			for b.Loop() {
				err := inventory.Walk(b.Context(), v, inventory.Progress{}, inventory.Options{Requests: n},
					func(_ context.Context, s *inventory.Step) error {
						if s.Listed != nil {
							rows.Add(int64(len(s.Listed.Blobs)))
						}
						return nil
					})
				if err != nil {
					b.Fatal(err)
				}
			}
			if rows.Load() != int64(b.N)*1_000_000 {
				b.Fatal(rows.Load())
			}
			b.ReportMetric(float64(rows.Load())/b.Elapsed().Seconds(), "blobs/s")
			b.ReportMetric(float64((processor()-before).Nanoseconds())/float64(rows.Load()), "cpu-ns/blob")
			b.ReportMetric(float64(requests.Load())/float64(b.N), "requests")
		})
	}
}

func processor() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
