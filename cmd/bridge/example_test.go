package main

import (
	"strings"
	"testing"
)

// The page's example has the form of the settings, and JSON in place of Avro.
func TestExampleRecord(t *testing.T) {
	t.Parallel()
	for envelope, want := range map[string]string{
		"wrapped": `{"after": {"account": "myaccount"`, "enriched": `"op": "c"`, "key_only": "",
	} {
		for _, format := range []string{"json", "avro"} {
			setAll(t, map[string]string{
				"SOURCE_URL": "file:///feed", "KAFKA_BROKERS": "localhost:9092", "ENVELOPE": envelope, "FORMAT": format,
				"REGISTRY_URL": map[string]string{"avro": "http://localhost:8081"}[format],
			})
			c, err := environ(t).Load(true)
			if err != nil {
				t.Fatal(err)
			}
			e := example(c)
			if e == nil || !strings.Contains(e.Value, want) || !strings.Contains(e.Key, "photos/cat.jpg") ||
				len(e.Headers) == 0 {
				t.Errorf("%s, %s: %+v", envelope, format, e)
			}
		}
	}
}
