package ops

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"golang.org/x/sync/singleflight"

	"blobfeed/bridge"
)

// Scrapes at the same time share one result, and a later one gets its own.
func TestShared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var calls singleflight.Group
		n, answer := 0, make(chan struct{})
		f := shared(&calls, func() (int, error) {
			n++
			<-answer
			return n, nil
		})
		for want := range 2 {
			var wg sync.WaitGroup
			for range 5 {
				wg.Go(func() {
					if got, err := f(); got != want+1 || err != nil {
						t.Errorf("%d, %v", got, err)
					}
				})
			}
			synctest.Wait()
			answer <- struct{}{}
			wg.Wait()
		}
	})
}

// BenchmarkFleetScrape is a scrape of 1,000 bridges that have met two brokers and an account.
func BenchmarkFleetScrape(b *testing.B) {
	f := NewFleetMonitor(Info{Instance: "a"})
	h := FleetHandler(f)
	for i := range 1000 {
		m := NewMonitor(fmt.Sprint("bridge-", i), "feed", Info{}, time.Minute, nil)
		metrics := NewLabelled(m)
		f.Show(m, metrics)
		m.Watch(settled{})
		m.Leased(bridge.LeasesAssigned, []int32{0})
		m.Requested("read", 200, time.Second, 10, nil)
		m.Requested("list", 200, time.Second, 10, nil)
		cl, err := kgo.NewClient(metrics.Hook()) // dials nobody
		if err != nil {
			b.Fatal(err)
		}
		defer cl.Close()
		for node := range int32(2) {
			at := kgo.BrokerMetadata{NodeID: node}
			metrics.clients.OnBrokerConnect(at, time.Second, nil, nil)
			metrics.clients.OnBrokerWrite(at, 0, 10, 0, 0, nil)
			metrics.clients.OnBrokerRead(at, 0, 10, 0, 0, nil)
			metrics.clients.OnBrokerE2E(at, 0, kgo.BrokerE2E{BytesRead: 1, BytesWritten: 1})
		}
	}
	for b.Loop() {
		w := httptest.NewRecorder()
		h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, "/metrics", nil))
		b.ReportMetric(float64(w.Body.Len()), "bytes")
	}
}
