//go:build integration

package integration

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/envelope"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/partitioner"
	"blobfeed/verify"
)

func registry(t *testing.T) *sr.Client {
	t.Helper()
	cl, err := sr.NewClient(sr.URLs(shared.SchemaRegistryURL))
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// level is held by the test that has set the registry's level of compatibility.
var level sync.Mutex

// compatibility sets what the registry asks of new schemas, until the end of the test.
func compatibility(t *testing.T, wanted sr.CompatibilityLevel) {
	t.Helper()
	level.Lock()
	t.Cleanup(level.Unlock)
	cl := registry(t)
	before := cl.Compatibility(t.Context())[0]
	set := func(level sr.CompatibilityLevel) error {
		return cl.SetCompatibility(t.Context(), sr.SetCompatibility{Level: level})[0].Err
	}
	if err := set(wanted); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		cl := registry(t)
		_ = cl.SetCompatibility(context.Background(), sr.SetCompatibility{Level: before.Level})
	})
}

// Avro of the real feed, decoded by a client that knows nothing but the registry, says what JSON says: rows, keys,
// deletions, markers, in each envelope, registered under the levels of compatibility that there are.
func TestAvroSaysWhatJSONSays(t *testing.T) {
	t.Parallel()
	brokers := shared.KafkaBrokers
	for _, c := range []struct {
		level    sr.CompatibilityLevel
		settings []string
		markers  string // the topic's suffix
	}{
		{sr.CompatBackward, []string{"ENVELOPE=wrapped",
			"OPTIONS=updated,key_in_value,diff,mvcc_timestamp,topic_in_value"}, ""},
		{sr.CompatFull, []string{"ENVELOPE=wrapped", "RESOLVED_TO=topic", "DELETES=both"}, ".resolved"},
		{sr.CompatFull, []string{"ENVELOPE=enriched", "OPTIONS=updated,key_in_value,diff", "EVENTS=state"}, ".resolved"},
		{sr.CompatFull, []string{"ENVELOPE=bare"}, ""},
	} {
		t.Run(fmt.Sprint(c.level, c.settings), func(t *testing.T) {
			compatibility(t, c.level)
			name, _ := names(t, brokers, -1)
			topic := fmt.Sprintf("changes-%d", time.Now().UnixNano()) // the same text in both, for topic_in_value
			common := append([]string{"EVENTS=all", "KAFKA_BROKERS=" + strings.Join(brokers, ","),
				"SOURCE_URL=" + fileURL(t, realFeed)}, c.settings...)
			runOnce(t, append(common, "NAME="+name+"-avro", "TOPIC=avro."+topic, "FORMAT=avro",
				"AVRO_TIMESTAMPS=string", "REGISTRY_URL="+shared.SchemaRegistryURL)...)
			if c.settings[0] == "ENVELOPE=bare" {
				common = append(common, "OPTIONS=key_in_value") // which Avro has no place for
			}
			runOnce(t, append(common, "NAME="+name+"-json", "TOPIC=json."+topic)...)

			want := map[string][]any{} // by position
			wantMarkers := 0
			of := map[bool][]string{false: {"json." + topic},
				true: {"json." + topic, "json." + topic + c.markers}}[c.markers != ""]
			for _, from := range of {
				for _, r := range read(t, brokers, from) {
					if r.Key == nil {
						wantMarkers++
						continue
					}
					p := header(r, "position")
					want[p] = append(want[p], plain(t, r.Value))
				}
			}
			got, gotMarkers := map[string][]any{}, 0
			avro := map[bool][]string{false: {"avro." + topic},
				true: {"avro." + topic, "avro." + topic + c.markers}}[c.markers != ""]
			for _, r := range decoded(t, avro...) {
				if r.Key == nil {
					gotMarkers++
					var m struct{ Resolved string }
					if err := json.Unmarshal(r.Value, &m); err != nil || m.Resolved != r.Headers["resolved"] ||
						m.Resolved == "" {
						t.Fatalf("marker %s: %v", r.Value, err)
					}
					continue
				}
				p := r.Headers["position"]
				if r.Null {
					r.Value = nil
				}
				got[p] = append(got[p], plain(t, bytes.ReplaceAll(r.Value, []byte(`"avro.`+topic),
					[]byte(`"json.`+topic))))
				if _, ok := r.Key.(map[string]any)["path"].(string); !ok {
					t.Fatalf("key %v", r.Key)
				}
			}
			if len(want) < 600 || len(got) != len(want) || gotMarkers != wantMarkers ||
				gotMarkers != realSegments*partitions {
				t.Errorf("Avro: %d events, %d markers; JSON: %d and %d", len(got), gotMarkers, len(want), wantMarkers)
			}
			for p, w := range want {
				if !reflect.DeepEqual(got[p], w) {
					t.Fatalf("event %s:\n%v\nJSON:\n%v", p, got[p], w)
				}
			}
		})
	}
}

// plain parses a value and takes away what Avro and JSON have on purpose in different forms: the key in the value, the
// fields of markers, where the row stands, when the record was made.
func plain(t *testing.T, value []byte) any {
	t.Helper()
	if len(value) == 0 {
		return nil
	}
	var m map[string]any
	if err := json.Unmarshal(value, &m); err != nil {
		t.Fatalf("%s: %v", value, err)
	}
	if row, ok := m["record"].(map[string]any); ok {
		m = row
	}
	for _, name := range []string{"key", "resolved", "__crdb__", "ts_ms", "ts_ns"} {
		delete(m, name)
	}
	if before, ok := m["before"].(map[string]any); ok { // in JSON without diff only the key is there
		for name, v := range before {
			if v == nil {
				delete(before, name)
			}
		}
	}
	return m
}

// A restart registers nothing new. An option that adds a field makes a second version. One that changes a
// field's type is frozen. Without the right to register, schemas are looked up. Where the subject has another
// schema, the bridge stops with the registry's words and the way out.
func TestSubjectsOverRestarts(t *testing.T) {
	t.Parallel()
	ctx, brokers := t.Context(), shared.KafkaBrokers
	compatibility(t, sr.CompatFull)
	dir := t.TempDir()
	live, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 100, Blobs: 20})
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Open(ctx); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, brokers, -1)
	settings := []string{"NAME=" + name, "TOPIC=" + topic, "FORMAT=avro", "EVENTS=all",
		"KAFKA_BROKERS=" + strings.Join(brokers, ","),
		"SOURCE_URL=" + fileURL(t, dir), "REGISTRY_URL=http://127.0.0.1:1," + shared.SchemaRegistryURL}
	cl := registry(t)
	step := func(key, value int, more ...string) {
		t.Helper()
		if err := live.Append(ctx, 100, nil); err != nil {
			t.Fatal(err)
		}
		if err := live.Next(ctx); err != nil {
			t.Fatal(err)
		}
		if key > 0 {
			runOnce(t, append(settings, more...)...)
		} else {
			stops(t, append(settings, more...), "BRIDGE_AVRO_TIMESTAMPS=string, but records were written with micros")
			key = 1
		}
		for subject, n := range map[string]int{"-key": key, "-value": value} {
			if versions, err := cl.SubjectVersions(ctx, topic+subject); err != nil || len(versions) != n {
				t.Errorf("subject %s has the versions %v, want %d: %v", topic+subject, versions, n, err)
			}
		}
	}
	step(1, 1)
	step(1, 1)
	step(1, 1, "REGISTRY_AUTO_REGISTER=false")
	step(1, 2, "OPTIONS=updated,key_in_value,topic_in_value")
	step(0, 2, "AVRO_TIMESTAMPS=string")
	step(1, 2)
	other := topic + "-other"
	o := envelope.Defaults(envelope.Avro, envelope.Wrapped)
	o.Topic, o.AvroTimestamps = other, envelope.Text
	subjects, err := envelope.Schemas(o)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range subjects {
		if _, err := cl.CreateSchema(ctx, s.Name, sr.Schema{Schema: s.Schema, Type: sr.TypeAvro}); err != nil {
			t.Fatal(err)
		}
	}
	stops(t, append(settings, "NAME="+name+"-other", "TOPIC="+other), other+"-value", "ompatib")
	markers := 0
	updated := []string{}
	for _, r := range decoded(t, topic) {
		if r.Key == nil {
			markers++
		} else {
			updated = append(updated, r.Headers["updated"])
		}
	}
	if slices.Sort(updated); markers != 6*partitions || len(updated) < 500 {
		t.Errorf("%d records, %d markers", len(updated), markers)
	}
	c := consume(t, brokers, topic, verify.NewUnique(), verify.NewOrder(),
		verify.NewResolved(partitions), verify.NewPartition(partitions, partitioner.Murmur2))
	c.drain(t)
	c.check(t)
}

// stops runs the bridge, which has to end over its settings, with some words.
func stops(t *testing.T, settings []string, words ...string) {
	t.Helper()
	p := start(t, []string{"run", "--once"}, settings...)
	code := p.wait(t, time.Minute)
	for _, word := range words {
		if code != 78 || !strings.Contains(p.log.String(), word) {
			t.Fatalf("exit code %d, want 78 and %q:\n%s", code, word, p.log)
		}
	}
	t.Logf("refused: %s", p.log)
}
