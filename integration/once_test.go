//go:build integration

package integration

import (
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"blobfeed/integration/faults"
	"blobfeed/internal/testing/arrivals"
	"blobfeed/internal/testing/feedsim"
)

// One request for the watermark is refused as if the blob did not exist: --once must not take that for an empty feed,
// or for its end.
func TestOnceWithoutWatermark(t *testing.T) {
	t.Parallel()
	for hit := range int64(4) {
		t.Run(fmt.Sprint("request", hit+1), func(t *testing.T) {
			var asked atomic.Int64
			sink, proxy, settings := misbehaving(t,
				faults.Options{Rate: 1, Spare: func(k faults.Kind, r *http.Request) bool {
					return k != faults.BlobNotFound || !strings.HasSuffix(r.URL.Path, "/meta/segments.json") ||
						asked.Add(1) != hit+1
				}})
			name, topic := names(t, shared.KafkaBrokers, -1)
			complete := arrivals.New()
			if err := feedsim.Write(t.Context(), sink, feedsim.Spec{Seed: 3, Segments: 4, Shards: 3,
				EventsPerSegment: 100, Versions: []int{6}},
				func(e feedsim.Event) { complete.Expect(e.ID) }); err != nil {
				t.Fatal(err)
			}
			runOnce(t, append(settings, "NAME="+name, "TOPIC="+topic, "EVENTS=all",
				"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","))...)
			c := consume(t, shared.KafkaBrokers, topic, complete)
			c.drain(t)
			c.check(t)
			t.Logf("%v", proxy.Stats())
		})
	}
}
