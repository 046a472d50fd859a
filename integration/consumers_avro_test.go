//go:build integration

package integration

import (
	"encoding/json"
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"
)

// Java reads of the real feed in Avro what Python reads, keys and values of every record, each with nothing but the
// registry.
func TestAvroInJava(t *testing.T) {
	t.Parallel()
	if err := buildJobs(); err != nil {
		t.Fatal(err)
	}
	name, _ := names(t, shared.KafkaBrokers, -1)
	brokers := strings.Join(shared.KafkaBrokers, ",")
	var topics []string
	for level, settings := range map[sr.CompatibilityLevel][]string{
		sr.CompatBackward: {"ENVELOPE=wrapped", "EVENTS=all", "OPTIONS=updated,key_in_value,diff"},
		sr.CompatFull:     {"ENVELOPE=enriched", "OPTIONS=updated,key_in_value,diff", "RESOLVED_TO=inline"},
	} {
		topic := fmt.Sprintf("changes-%s-%d", level, time.Now().UnixNano())
		topics = append(topics, topic)
		t.Run(level.String(), func(t *testing.T) {
			compatibility(t, level)
			runOnce(t, append(settings, "NAME="+name+level.String(), "TOPIC="+topic, "FORMAT=avro",
				"AVRO_TIMESTAMPS=string", "KAFKA_BROKERS="+brokers,
				"REGISTRY_URL="+shared.SchemaRegistryURL, "SOURCE_URL="+fileURL(t, realFeed))...)
		})
	}
	type record struct {
		Topic      string
		Partition  int32
		Offset     int64
		Key, Value any
	}
	want := map[string]record{}
	markers := 0
	for _, r := range decoded(t, topics...) {
		at := record{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: r.Key}
		if err := json.Unmarshal(r.Value, &at.Value); err != nil {
			t.Fatal(err)
		}
		if r.Key == nil {
			markers++
		}
		want[fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)] = at
	}
	got := runJob[record](t, "", "Decode", append([]string{brokers, shared.SchemaRegistryURL}, topics...)...)
	if len(got) != len(want) || len(got) < 900 || markers != len(topics)*realSegments*partitions {
		t.Errorf("Java read %d records, Python %d, %d of them markers", len(got), len(want), markers)
	}
	for _, r := range got {
		if w := want[fmt.Sprintf("%s/%d/%d", r.Topic, r.Partition, r.Offset)]; !reflect.DeepEqual(r, w) {
			t.Fatalf("Java read\n%v\nPython\n%v", r, w)
		}
	}
}
