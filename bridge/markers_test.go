package bridge

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/verify"
)

// A topic of its own for the markers says, by partition, below which offset all is that they promise.
func TestMarkersTopic(t *testing.T) {
	t.Parallel()
	t.Run("by leases", func(t *testing.T) { markersTopic(t, 0) })
	t.Run("in bundles", func(t *testing.T) { markersTopic(t, 1<<20) })
}

func markersTopic(t *testing.T, bundle int64) {
	c := broker(t)
	o, _ := options(t, c, realFeed)
	o.Records.Markers, o.Pace.BundleBytes = envelope.MarkersTopic, bundle
	o.Records.Encoder = encoder(envelope.Options{Events: envelope.EventsAll, Markers: envelope.MarkersTopic})
	for range 2 { // the second run has nothing to say
		must(t, runOnce(t, o))
	}
	type at struct {
		updated string
		offset  int64
	}
	data := map[int32][]at{}
	inline, markers := 0, 0
	consume(t, c, noted(func(r verify.Record) {
		if r.Key == nil {
			inline++
		}
		data[r.Partition] = append(data[r.Partition], at{string(r.Header("updated")), r.Offset})
	}))
	consumeAll(t, c, []string{plain.MarkerTopic(topic)}, noted(func(r verify.Record) {
		var m struct {
			Resolved  string
			Partition int32
			Offset    int64
		}
		must(t, json.Unmarshal(r.Value, &m))
		if m.Partition != r.Partition {
			t.Errorf("%s is on partition %d", r.Value, r.Partition)
		}
		markers++
		for _, d := range data[r.Partition] {
			if d.updated <= m.Resolved && d.offset >= m.Offset {
				t.Errorf("marker %s, but %s is at %d", r.Value, d.updated, d.offset)
			}
		}
		if all := data[r.Partition]; m.Offset > all[len(all)-1].offset+2 { // the end of its transaction follows
			t.Errorf("marker %s, but the last record is at %d", r.Value, all[len(all)-1].offset)
		}
	}))
	if inline != 0 || markers != realSegments*partitions {
		t.Errorf("%d markers, %d in the topic of the records", markers, inline)
	}
}

// The topic of markers follows the partitions of the topic it speaks of.
func TestMarkersTopicGrows(t *testing.T) {
	m, live := simulated(t, feedsim.Spec{EventsPerSegment: 200})
	c := broker(t)
	o, _ := over(t, c, m)
	o.Records.Markers = envelope.MarkersTopic
	o.Records.Encoder = encoder(envelope.Options{Events: envelope.EventsAll, Markers: envelope.MarkersTopic})
	must(t, live.Append(t.Context(), 10, nil), live.Next(t.Context()), runOnce(t, o))
	_, err := admin(t, c).CreatePartitions(t.Context(), 3, topic)
	must(t, err, live.Append(t.Context(), 10, nil), live.Next(t.Context()), runOnce(t, o))
	if _, markers := consumeAll(t, c, []string{plain.MarkerTopic(topic)}); markers != 2*partitions+3 {
		t.Errorf("%d markers", markers)
	}
}

// Markers have no key, which a compacted topic rejects. A topic of markers that somebody created so is refused at the
// start: every attempt to write to it would fail.
func TestCompactedMarkersTopic(t *testing.T) {
	c := broker(t)
	createTopic(t, c, plain.MarkerTopic(topic), partitions, map[string]*string{"cleanup.policy": ptr("compact")})
	o, _ := options(t, c, realFeed)
	o.Records.Markers = envelope.MarkersTopic
	var settings *plain.SettingsError
	if err := runOnce(t, o); !errors.As(err, &settings) ||
		!strings.Contains(err.Error(), "topic changes.resolved has cleanup.policy=compact") {
		t.Errorf("err = %v", err)
	}
}
