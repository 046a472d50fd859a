package bridge

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
)

// Rebalances that bring no lease leave no line in the log; they only say that this instance is a member.
func TestAssignmentsInLog(t *testing.T) {
	t.Parallel()
	o, _ := options(t, broker(t), realFeed)
	var log bytes.Buffer
	o.Log = slog.New(slog.NewTextHandler(&log, nil))
	b := New(o)
	b.hard = t.Context()
	b.Assigned(nil)
	if log.Len() > 0 {
		t.Errorf("none came: %s", log.String())
	}
	if err := runOnce(t, o); err != nil || strings.Count(log.String(), "leases assigned") != 1 {
		t.Errorf("%v: %s", err, log.String())
	}
}

// The real feed is delivered once, and a second run adds nothing, in both modes of delivery.
func TestOnce(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]bool{"exactly once": true, "at least once": false} {
		t.Run(name, func(t *testing.T) {
			c := broker(t)
			for run := range 2 {
				o, r := options(t, c, realFeed)
				o.Kafka.Transactional = transactional
				if err := runOnce(t, o); err != nil {
					t.Fatal(err)
				}
				if want := realEvents * (1 - run); r.Read != want || r.Emitted != want || r.Late != 0 {
					t.Errorf("run %d: %+v", run, r.Commit)
				}
			}
			data, markers := consume(t, c, promises()...)
			// A bundle has inner markers only in a transaction: otherwise they would be below what is repeated after
			// a crash.
			all := markers == realSegments*partitions
			if data != realEvents || transactional != all || markers == 0 || markers%partitions != 0 {
				t.Errorf("%d records and %d markers", data, markers)
			}
		})
	}
}

// What would break the topic or the state is refused, with a text that names the setting.
func TestRefused(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		change func(*Options)
		policy string
		says   string
	}{
		"another feed": {
			change: func(o *Options) { o.Feed.ID = "other" },
			says:   "BRIDGE_SOURCE_URL",
		},
		"another setting": {
			change: func(o *Options) { o.Records.Frozen = map[string]string{"BRIDGE_TOPIC": "x"} },
			says:   "BRIDGE_TOPIC=x",
		},
		"compacted": {
			change: func(o *Options) { o.Name, o.Topics.Names = "fresh", byTemplate(t, "compacted") },
			policy: "compact",
			says:   "cleanup.policy=compact",
		},
	} {
		t.Run(name, func(t *testing.T) {
			k := broker(t)
			if c.policy != "" {
				createTopic(t, k, "compacted", 1, map[string]*string{"cleanup.policy": &c.policy})
			}
			o, _ := options(t, k, realFeed)
			if err := runOnce(t, o); err != nil {
				t.Fatal(err)
			}
			c.change(&o)
			err := runOnce(t, o)
			var settings *plain.SettingsError
			if !errors.As(err, &settings) || !strings.Contains(err.Error(), c.says) {
				t.Errorf("err = %v", err)
			}
		})
	}
}

// Topics that the bridge may not create are named all at once, with the commands that create them as it would.
func TestMissingTopics(t *testing.T) {
	t.Parallel()
	c := broker(t)
	o, r := options(t, c, realFeed)
	o.Topics.Create.By, o.Topics.Create.Flags = topics.ByNobody, "--bootstrap-server k:9092"
	o.Records.Markers = envelope.MarkersTopic
	o.Topics.DeadLetter = "test.dlq"
	const create = "kafka-topics.sh --bootstrap-server k:9092 --create --topic "
	commands := []string{
		create + "test.offsets --partitions 4 --replication-factor 1 --config cleanup.policy=compact " +
			"--config min.cleanable.dirty.ratio=0.1 --config segment.bytes=16777216",
		create + topic + " --partitions 4 --replication-factor 1 --config cleanup.policy=delete --config retention.ms=-1",
		create + topic + ".resolved --partitions 4 --replication-factor 1 --config cleanup.policy=delete " +
			"--config retention.ms=-1", // the feed is of 2020
		create + "test.dlq --partitions 1 --replication-factor 1 --config retention.ms=-1",
	}
	names := []string{"test.offsets", topic, topic + ".resolved", "test.dlq"}
	for i, name := range names { // those before are there
		err := runOnce(t, o)
		var missing *topics.MissingError
		if !errors.As(err, &missing) || missing.Topic != name || !slices.Equal(missing.Create, commands[i:]) {
			t.Errorf("err = %v", err)
		}
		settings := map[string]*string{"cleanup.policy": kadm.StringPtr("delete")}
		if i == 0 {
			*settings["cleanup.policy"] = "compact"
		}
		createTopic(t, c, name, partitions, settings)
	}
	must(t, runOnce(t, o))
	if len(r.failed) == 0 {
		t.Error("the attempts were not reported")
	}
}
