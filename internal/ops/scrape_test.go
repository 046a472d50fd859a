package ops

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
)

// BenchmarkFleetScrape is a scrape of 1,000 bridges that have met two brokers and an account.
func BenchmarkFleetScrape(b *testing.B) {
	f := NewFleet(Info{Instance: "a"})
	h := FleetHandler(f)
	for i := range 1000 {
		m := NewMonitor(fmt.Sprint("bridge-", i), "feed", Info{}, time.Minute, nil)
		metrics := NewLabelled(m)
		f.Show(m, metrics)
		m.Watch(settled{})
		m.Leased(bridge.LeasesAssigned, []int32{0})
		m.Requested("read", 200, time.Second, 10)
		m.Requested("list", 200, time.Second, 10)
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
