package bridge

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/plain"
)

// A template by which a container's events could go to the state or to the dead letters is refused at the start: the
// container may come years later, and every instance would end at it.
func TestTemplateOfOwnTopics(t *testing.T) {
	for _, c := range []struct{ template, letters, meets string }{
		{"test.{container}", "", "test.offsets"},
		{"{container}.dlq", "test.dlq", "test.dlq"},
		{"test.offsets", "", "test.offsets"},
	} {
		o, _ := options(t, broker(t), realFeed)
		o.Topics.Names, o.Topics.DeadLetter = byTemplate(t, c.template), c.letters
		var settings *plain.SettingsError
		if err := runOnce(t, o); !errors.As(err, &settings) || !strings.Contains(err.Error(), "could go to "+c.meets) {
			t.Errorf("%s: %v", c.template, err)
		}
	}
}

const limitSetting = "max.message.bytes"

// smallState creates a state topic that takes little.
func smallState(t *testing.T, c *kfake.Cluster) {
	t.Helper()
	configs := map[string]*string{"cleanup.policy": ptr("compact"), limitSetting: ptr("4096")}
	createTopic(t, c, "test.offsets", 4, configs)
}

// containers returns a feed of one segment, of one shard, with an event in each of n containers.
func containers(n int) *memory {
	m := newMemory()
	var events []happened
	for i := range n {
		blob := fmt.Sprintf("container-%04d/blobs/a", i)
		events = append(events, happened{fmt.Sprint("id-", i), "2026-01-01T10:00:00Z", blob})
	}
	m.segment("2026/01/01/1000", "Finalized", 60, map[int][]happened{0: events})
	return m
}

// firstFailure returns what a bridge reports first.
func firstFailure(t *testing.T, o Options, r *recorder) string {
	t.Helper()
	stop := run(t, o)
	<-r.failing
	stop()
	return r.failed[0]
}

// created returns the topics of a cluster that containers have made.
func created(t *testing.T, c *kfake.Cluster) (names []string) {
	t.Helper()
	all, err := admin(t, c).ListTopics(t.Context())
	must(t, err)
	for _, name := range all.Names() {
		if strings.HasPrefix(name, "container-") {
			names = append(names, name)
		}
	}
	return names
}

// Each document of the state is one record. Topics that would make it larger than the state's topic takes are refused
// before their first record is written; today's documents stay committable, so the bridge goes on when the limit is
// raised.
func TestStateLimit(t *testing.T) {
	t.Parallel()
	for what, bundle := range map[string]int64{"bundles": 1 << 20, "leases": 0} {
		t.Run(what, func(t *testing.T) {
			const n = 80
			c := broker(t)
			smallState(t, c)
			o, r := over(t, c, containers(n))
			o.Topics.Names, o.Pace.BundleBytes = byTemplate(t, "{container}"), bundle
			if err := firstFailure(t, o, r); !strings.Contains(err, limitSetting+" of topic test.offsets: raise that") {
				t.Fatal(err)
			}
			if made := len(created(t, c)); made < 25 || made > 60 {
				t.Errorf("%d topics are created", made)
			}
			o.Topics.DeadLetter = deadTopic
			must(t, runOnce(t, o))
			made := created(t, c)
			if data, _ := consumeAll(t, c, made, promises()...); data != len(made) || data+len(dead(t, c)) != n {
				t.Errorf("%d records in %d topics, %d dead letters", data, len(made), len(dead(t, c)))
			}
		})
	}
}

// The operator raises the limit while the bridge waits at a topic that the state has no room for: it continues by
// itself.
func TestStateLimitIsRaised(t *testing.T) {
	t.Parallel()
	const n = 80
	c := broker(t)
	smallState(t, c)
	o, r := over(t, c, containers(n))
	o.Topics.Names = byTemplate(t, "{container}")
	stop := run(t, o)
	defer stop()
	<-r.failing
	setTopic(t, c, "test.offsets", limitSetting, "65536")
	r.await(t, func(c Commit) bool { return c.Emitted == n })
}

// A template makes no more topics than it may, and a warning comes before. Those that are there keep getting their
// events.
func TestTopicLimit(t *testing.T) {
	t.Parallel()
	c := broker(t)
	var log bytes.Buffer
	o, r := over(t, c, containers(20))
	o.Topics.Names, o.Topics.Create.Limit = byTemplate(t, "{container}"), 10
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	if err := firstFailure(t, o, r); !strings.Contains(err, "BRIDGE_TOPIC_LIMIT=10") {
		t.Fatal(err)
	}
	if made := created(t, c); len(made) != 10 {
		t.Errorf("%d topics", len(made))
	}
	if !strings.Contains(log.String(), "topics=8 limit=10") || strings.Contains(log.String(), "topics=7 ") {
		t.Errorf("log: %s", &log)
	}
	o.Topics.DeadLetter = deadTopic
	must(t, runOnce(t, o))
	if data, _ := consumeAll(t, c, created(t, c), promises()...); data != 10 || len(dead(t, c)) != 10 {
		t.Errorf("%d records, %d dead letters", data, len(dead(t, c)))
	}
}

// Without a literal prefix a container can be named like a topic of somebody else. Nothing is written there.
func TestForeignTopic(t *testing.T) {
	t.Parallel()
	const name = "container-0001"
	for _, tc := range []struct {
		what     string
		template string
		adopt    bool
		before   func(t *testing.T, cl *kgo.Client, topic string)
		refused  bool // its events, or, behind a literal, the start
	}{
		{"records", "{container}", false, put, true},
		{"records, adopted", "{container}", true, put, false},
		{"records, behind a literal", "container-{container}", false, put, true},
		{"records, behind a literal, adopted", "container-{container}", true, put, false},
		{"empty", "{container}", false, func(*testing.T, *kgo.Client, string) {}, false},
		{"deleted records", "{container}", false, func(t *testing.T, cl *kgo.Client, name string) {
			put(t, cl, name)
			at := kadm.Offsets{}
			at.Add(kadm.Offset{Topic: name, Partition: 0, At: 1})
			_, err := kadm.NewClient(cl).DeleteRecords(t.Context(), at)
			must(t, err)
		}, true},
		{"ended before its first commit", "{container}", false, func(t *testing.T, cl *kgo.Client, name string) {
			must(t, cl.BeginTransaction())
			must(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: name}).FirstErr())
			must(t, cl.EndTransaction(t.Context(), kgo.TryAbort))
		}, false},
	} {
		t.Run(tc.what, func(t *testing.T) {
			c := broker(t)
			o, r := over(t, c, containers(3))
			o.Topics.Names, o.Topics.Adopt = byTemplate(t, tc.template), tc.adopt
			there := strings.ReplaceAll(tc.template, "{container}", name)
			createTopic(t, c, there, 1, nil)
			cl, err := kgo.NewClient(append(o.Kafka.Client, kgo.TransactionalID("stranger"),
				kgo.RecordPartitioner(kgo.ManualPartitioner()))...)
			must(t, err)
			defer cl.Close()
			tc.before(t, cl, there)
			if !tc.refused {
				must(t, runOnce(t, o))
				return
			}
			if o.Topics.Names.Prefixed() {
				refused(t, o, "topic "+there+" holds records", "bridge reset --yes")
				return
			}
			if err := firstFailure(t, o, r); !strings.Contains(err, "topic "+name+": it holds records") {
				t.Fatal(err)
			}
			o.Topics.DeadLetter = deadTopic
			must(t, runOnce(t, o))
			data, _ := consumeAll(t, c, []string{"container-0000", "container-0002"})
			if letters := len(dead(t, c)); data != 2 || letters != 1 {
				t.Errorf("%d records, %d dead letters", data, letters)
			}
		})
	}
}

func put(t *testing.T, cl *kgo.Client, topic string) {
	t.Helper()
	must(t, cl.BeginTransaction())
	must(t, cl.ProduceSync(t.Context(), &kgo.Record{Topic: topic}).FirstErr())
	must(t, cl.EndTransaction(t.Context(), kgo.TryCommit))
}

func ptr(s string) *string { return &s }
