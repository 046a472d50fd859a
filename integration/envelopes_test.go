//go:build integration

package integration

import (
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/envelope"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/partitioner"
	"blobfeed/verify"
)

// Each envelope, as its defaults are, through real Kafka: the promises hold, values have their form, and a null is not
// an empty value.
func TestEnvelopes(t *testing.T) {
	t.Parallel()
	brokers := shared.KafkaBrokers
	const empty, null = "(empty)", "(null)"
	for _, c := range []struct {
		settings                 []string
		upsert, deletion, marker string // how values begin
		policy                   string
		markers                  string // suffix of their topic
		tombstones               bool   // besides deletions
	}{
		{[]string{"ENVELOPE=wrapped"}, `{"after": {"account"`, `{"after": null, "key"`, `{"resolved":"`, "delete", "",
			false},
		{[]string{"ENVELOPE=wrapped", "DELETES=both"}, `{"after": {"account"`, `{"after": null, "key"`, `{"resolved":"`,
			"delete", "", true},
		{[]string{"ENVELOPE=bare"}, `{"__crdb__": {"key"`, `{"__crdb__": {"key"`, `{"__crdb__":{"resolved":"`, "delete",
			"", false},
		{[]string{"ENVELOPE=row"}, `{"__crdb__": {"updated"`, null, `{"__crdb__":{"resolved":"`, "delete", "", false},
		{[]string{"ENVELOPE=row", "OPTIONS=none", "KEY_FORMAT=string", "RESOLVED_TO=topic"}, `{"account"`, null,
			`{"resolved":"`, "compact", ".resolved", false},
		{[]string{"ENVELOPE=row", "DELETES=empty"}, `{"__crdb__": {"updated"`, empty,
			`{"__crdb__":{"resolved":"`, "delete", "", false},
		{[]string{"ENVELOPE=key_only"}, empty, empty, `{"__crdb__":{"resolved":"`, "delete", "", false},
		{[]string{"ENVELOPE=enriched"}, `{"after": {"account"`, `{"after": null, "before": {"path"`, `{"resolved":"`,
			"delete", ".resolved", false},
	} {
		t.Run(strings.Join(c.settings, ","), func(t *testing.T) {
			name, _ := names(t, brokers, -1)
			topic := name + ".out" // which the bridge creates
			runOnce(t, append(c.settings, "NAME="+name, "TOPIC="+topic, "KAFKA_BROKERS="+strings.Join(brokers, ","),
				"SOURCE_URL="+fileURL(t, realFeed))...)
			data, deletions, nulls, markers := 0, 0, 0, 0
			expect := func(r verify.Record, begin string) {
				t.Helper()
				value := string(r.Value)
				if r.Value == nil {
					value = null
				} else if value == "" {
					value = empty
				}
				if !strings.HasPrefix(value, begin) {
					t.Errorf("value of %s is %.100s, want %s", r.Key, value, begin)
				}
			}
			last := ""
			records := read(t, brokers, topic)
			for _, r := range records {
				if position := header(r, "position"); r.Key == nil {
					if c.markers == "" {
						expect(r, c.marker)
						markers++
					} else {
						t.Errorf("a marker among the records")
					}
				} else if c.tombstones && position == last {
					expect(r, null)
					nulls++
				} else if last = position; header(r, "ce_type") == "Microsoft.Storage.BlobDeleted" {
					expect(r, c.deletion)
					deletions++
				} else {
					expect(r, c.upsert)
					data++
				}
			}
			if c.markers != "" {
				for _, r := range read(t, brokers, topic+c.markers) {
					expect(r, c.marker)
					markers++
				}
			}
			if data < 600 || deletions == 0 || c.tombstones && nulls != deletions ||
				markers != realSegments*partitions {
				t.Errorf("%d upserts, %d deletions, %d nulls, %d markers", data, deletions, nulls, markers)
			}
			if policy := setting(t, brokers, topic, "cleanup.policy"); policy != c.policy {
				t.Errorf("cleanup.policy=%s, want %s", policy, c.policy)
			}
			runOnce(t, append(c.settings, "NAME="+name, "TOPIC="+topic, "KAFKA_BROKERS="+strings.Join(brokers, ","),
				"SOURCE_URL="+fileURL(t, realFeed))...)
			if again := read(t, brokers, topic); len(again) > len(records) ||
				c.policy == "delete" && len(again) < len(records) {
				t.Errorf("there were %d records, and %d after the second run", len(records), len(again))
			}
		})
	}
}

func setting(t *testing.T, brokers []string, topic, name string) string {
	t.Helper()
	configs, err := kadm.NewClient(client(t, brokers)).DescribeTopicConfigs(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	rc, err := configs.On(topic, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range rc.Configs {
		if c.Key == name {
			return c.MaybeValue()
		}
	}
	return ""
}

// A topic per container, which appear one after the other, on real Kafka: the promises hold on each.
func TestTopicPerContainer(t *testing.T) {
	t.Parallel()
	ctx, brokers := t.Context(), shared.KafkaBrokers
	name, _ := names(t, brokers, -1)
	dir := t.TempDir()
	live, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{EventsPerSegment: 200, Shards: 3})
	if err != nil {
		t.Fatal(err)
	}
	if err := live.Open(ctx); err != nil {
		t.Fatal(err)
	}
	want := map[string]int64{}
	expect := func(e feedsim.Event) {
		if e.Key != "" {
			want[name+"-"+envelope.KafkaName(e.Container)]++
		}
	}
	settings := []string{"NAME=" + name, "TOPIC=" + name + "-{container}", "EVENTS=all",
		"KAFKA_BROKERS=" + strings.Join(brokers, ","), "SOURCE_URL=" + fileURL(t, dir)}
	for _, n := range []int{1, 50, 150} {
		if err := live.Append(ctx, n, expect); err != nil {
			t.Fatal(err)
		}
		runOnce(t, settings...) // in the middle of a segment
		if err := live.Append(ctx, n, expect); err != nil {
			t.Fatal(err)
		}
		if err := live.Next(ctx); err != nil {
			t.Fatal(err)
		}
		runOnce(t, settings...)
	}
	if len(want) != 3 {
		t.Fatalf("topics %v", want)
	}
	for topic, n := range want {
		c := consume(t, brokers, topic, verify.NewUnique(), verify.NewOrder(),
			verify.NewResolved(partitions), verify.NewPartition(partitions, partitioner.Murmur2))
		c.drain(t)
		c.check(t)
		if c.data != n || c.marks < partitions || c.marks%partitions != 0 {
			t.Errorf("topic %s: %d of %d records, %d markers", topic, c.data, n, c.marks)
		}
	}
}

// A topic that nobody creates is named, with what to do.
func TestMissingTopics(t *testing.T) {
	t.Parallel()
	// brokers of the stack create none
	for create, says := range map[string]string{
		"off": ".offsets and 1 other do not exist: ", "broker": ".none does not exist",
	} {
		brokers := shared.KafkaBrokers
		name, _ := names(t, brokers, -1)
		p := start(t, []string{"run", "--once"}, "NAME="+name, "TOPIC="+name+".none", "TOPIC_CREATE="+create,
			"KAFKA_BROKERS="+strings.Join(brokers, ","), "SOURCE_URL="+fileURL(t, realFeed))
		if code := p.wait(t, time.Minute); code != 1 || !strings.Contains(p.log.String(), says) {
			t.Errorf("TOPIC_CREATE=%s: exit code %d:\n%s", create, code, p.log)
		}
	}
}
