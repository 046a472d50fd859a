//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"
)

// What the bridge writes to real Kafka, with a real registry, holds by its own judge, in each envelope and both
// formats.
func TestVerifyForms(t *testing.T) {
	t.Parallel()
	for _, form := range []string{
		"ENVELOPE=wrapped EVENTS=all", "ENVELOPE=wrapped OPTIONS=updated,key_in_value,diff DELETES=both",
		"ENVELOPE=bare", "ENVELOPE=row",
		"ENVELOPE=row RESOLVED_TO=topic OPTIONS=none KEY_FORMAT=string", "ENVELOPE=key_only", "ENVELOPE=enriched",
		"ENVELOPE=enriched RESOLVED_TO=inline ENRICHED_PROPERTIES=source,schema OPTIONS=updated,key_in_value,diff",
		"FORMAT=avro ENVELOPE=wrapped OPTIONS=updated,key_in_value,diff", "FORMAT=avro ENVELOPE=bare RESOLVED_TO=topic",
		"FORMAT=avro ENVELOPE=key_only HEADERS=none",
		"FORMAT=avro ENVELOPE=enriched", "FORMAT=avro ENVELOPE=enriched RESOLVED_TO=inline DELETES=both",
		"DELIVERY=at_least_once",
	} {
		t.Run(form, func(t *testing.T) {
			name, _ := names(t, shared.KafkaBrokers, -1)
			settings := append(strings.Fields(form), "NAME="+name, "TOPIC="+name+".out",
				"KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","), "SOURCE_URL="+fileURL(t, realFeed))
			if strings.Contains(form, "avro") {
				settings = append(settings, "REGISTRY_URL="+shared.SchemaRegistryURL)
			}
			runOnce(t, settings...)
			for _, args := range [][]string{{"verify"}, {"verify", "--feed"}} {
				if p := start(t, args, settings...); p.wait(t, time.Minute) != 0 ||
					strings.Contains(p.log.String(), "BROKEN") {
					t.Errorf("%s: %s", args, p.log)
				}
			}
		})
	}
}
