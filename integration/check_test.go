//go:build integration

package integration

import (
	"slices"
	"strings"
	"testing"

	"blobfeed/internal/check"
)

// On a real registry and brokers: before the first run the topic of markers and the schemas are not there and can be
// made; afterwards they are found.
func TestCheck(t *testing.T) {
	t.Parallel()
	name, topic := names(t, shared.KafkaBrokers, -1)
	settings := []string{"NAME=" + name, "TOPIC=" + topic, "FORMAT=avro", "RESOLVED_TO=topic",
		"SOURCE_URL=" + fileURL(t, realFeed),
		"KAFKA_BROKERS=" + strings.Join(shared.KafkaBrokers, ","), "REGISTRY_URL=" + shared.SchemaRegistryURL}
	for _, want := range [][]string{{topic + ".resolved does not exist; run creates it", "run registers it"},
		{topic + ".resolved has 6 partitions", "subject " + topic + "-value has the schema, id"}} {
		found := checked(t, settings, clean)
		for _, text := range want {
			if !slices.ContainsFunc(found, func(f check.Finding) bool {
				return f.Status == check.OK && strings.Contains(f.Detail, text)
			}) {
				t.Errorf("%q is not said: %v", text, found)
			}
		}
		runOnce(t, settings...)
	}
}
