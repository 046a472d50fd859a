package main

import (
	"errors"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"blobfeed/integration/feedsim"
	"blobfeed/verify"
)

// form is a way in which topics are written.
type form struct {
	name     string
	settings string
	// then is what happens to the bridge after its first run, and before the feed's last segments are delivered.
	then  func(t *testing.T, l *liveFeed)
	topic string // that is judged, and broken; "": that of all
	// changed is what verify has to say of a setting that was another one at first.
	changed string
	// stateful says that without the bridge's state the feed says little or nothing.
	stateful bool
	// unknown are the faults that can't be seen in this form, by what finds them elsewhere: "state:" or "feed:" and a name, or
	// a name alone for both.
	unknown []string
}

// liveFeed is a feed that grows, and where it is.
type liveFeed struct {
	*feedsim.Feed
	dir string
}

// grow fills segments, and begins the next one.
func (l *liveFeed) grow(t *testing.T, segments int) {
	t.Helper()
	for range segments {
		if err := errors.Join(l.Append(t.Context(), 24, nil), l.Next(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
}

func forms() []form {

	return []form{
		{name: "wrapped", settings: "EVENTS=all"},
		{name: "wrapped, everything", settings: "DIFF=true MVCC_TIMESTAMP=true TOPIC_IN_VALUE=true EXTRA_HEADERS=team=a"},
		{name: "wrapped, key and tombstone", settings: "DELETES=both KEY_FORMAT=json_object"},
		{name: "wrapped, tombstones", settings: "DELETES=tombstone KEY_FORMAT=string PARTITIONER=fnv-1a"},
		{name: "wrapped, empty", settings: "DELETES=empty"},
		{name: "wrapped, markers aside", settings: "RESOLVED_TO=topic"},
		{name: "wrapped, no markers", settings: "RESOLVED_TO=off", stateful: true},
		{name: "wrapped, no headers", settings: "HEADERS=none"},
		{name: "bare", settings: "ENVELOPE=bare"},
		{name: "row", settings: "ENVELOPE=row EVENTS=all"},
		{name: "row, empty", settings: "ENVELOPE=row DELETES=empty"},
		{name: "table", settings: "ENVELOPE=row RESOLVED_TO=topic UPDATED=false KEY_FORMAT=string"},
		{name: "key only", settings: "ENVELOPE=key_only"},
		{name: "enriched", settings: "ENVELOPE=enriched"},
		{name: "enriched, everything", settings: "ENVELOPE=enriched RESOLVED_TO=inline ENRICHED_PROPERTIES=source,schema BEFORE=full TOPIC_IN_VALUE=true MVCC_TIMESTAMP=true"},
		{name: "enriched, nothing", settings: "ENVELOPE=enriched ENRICHED_PROPERTIES=none BEFORE=none HEADERS=none RESOLVED_TO=inline DELETES=both", unknown: []string{
			"state:a record is doubled", "state:a record comes again at the end", "state:an old record comes last", "a record is below its marker", "state:a timestamp is wrong"}},
		{name: "Avro", settings: "FORMAT=avro EVENTS=all"},
		{name: "Avro, everything", settings: "FORMAT=avro DIFF=true MVCC_TIMESTAMP=true TOPIC_IN_VALUE=true DELETES=both AVRO_TIMESTAMPS=string KEY_FORMAT=string"},
		{name: "Avro, no headers", settings: "FORMAT=avro HEADERS=none"},
		{name: "Avro, bare", settings: "FORMAT=avro ENVELOPE=bare AVRO_TIMESTAMPS=millis"},
		{name: "Avro, key only", settings: "FORMAT=avro ENVELOPE=key_only"},
		{name: "Avro, enriched", settings: "FORMAT=avro ENVELOPE=enriched"},
		{name: "Avro, enriched, everything", settings: "FORMAT=avro ENVELOPE=enriched RESOLVED_TO=inline BEFORE=full TOPIC_IN_VALUE=true DELETES=both"},
		{name: "at least once", settings: "DELIVERY=at_least_once", stateful: true, unknown: []string{
			"a record is doubled", "a record comes again at the end", "state:an old record comes last", "a marker is missing everywhere"}},
		{name: "no bundles", settings: "BUNDLE_BYTES=0"},
		{name: "template", settings: "TOPIC={container}", topic: "photos"},
		{name: "interval", settings: "START=2026-01-01T00:30:00Z END_TIME=2026-01-01T02:30:00Z"},
		{name: "seek", stateful: true, then: func(t *testing.T, _ *liveFeed) {
			if code, _, stderr := call(t, "seek", "--to", "2026/01/01/0100", "--yes"); code != exitOK {
				t.Fatal(stderr)
			}
		}},
		{name: "seek, markers aside", settings: "RESOLVED_TO=topic", stateful: true, then: func(t *testing.T, _ *liveFeed) {
			if code, _, stderr := call(t, "seek", "--to", "2026/01/01/0100", "--yes"); code != exitOK {
				t.Fatal(stderr)
			}
		}},
		{name: "gap", settings: "ON_GAP=continue", stateful: true, then: func(t *testing.T, l *liveFeed) {
			l.grow(t, 2)
			for _, name := range []string{"idx/segments/2026/01/01/0400", "log/00/2026/01/01/0400"} { // and what is before, as retention does
				for _, hour := range []string{"0000", "0100", "0200", "0300", "0400"} {
					if err := os.RemoveAll(filepath.Join(l.dir, strings.Replace(name, "0400", hour, 1))); err != nil {
						t.Fatal(err)
					}
				}
			}
		}},
		{name: "DIFF came", then: func(t *testing.T, _ *liveFeed) { t.Setenv("BRIDGE_DIFF", "true") }, changed: "BRIDGE_DIFF=false"},
		{name: "headers came", settings: "HEADERS=none", then: func(t *testing.T, _ *liveFeed) { t.Setenv("BRIDGE_HEADERS", "cloudevents") },
			changed: "BRIDGE_HEADERS=none"},
		{name: "tombstones went", settings: "DELETES=tombstone EXTRA_HEADERS=team=a", then: func(t *testing.T, _ *liveFeed) {
			t.Setenv("BRIDGE_DELETES", "envelope")
			t.Setenv("BRIDGE_EXTRA_HEADERS", "team=b")
		}, changed: "BRIDGE_DELETES=tombstone and BRIDGE_EXTRA_HEADERS=team=a"},
		{name: "Avro, MVCC_TIMESTAMP went", settings: "FORMAT=avro MVCC_TIMESTAMP=true DELETES=both", changed: "BRIDGE_MVCC_TIMESTAMP=true",
			then: func(t *testing.T, _ *liveFeed) { t.Setenv("BRIDGE_MVCC_TIMESTAMP", "false") }},
		{name: "replay", stateful: true, topic: "again"},
	}
}

// scene is what a form has made.
type scene struct {
	form
	*copied
	topic string
	base  verification // by the settings of the form
}

// mix has no changes of properties, of which feedsim says a former content type that no event had.
var mix = feedsim.Mix{Created: 60, Deleted: 12, Undeleted: 1, Metadata: 5, Tags: 4, Tier: 4, Async: 2, Snapshot: 3, SnapshotDeleted: 1}

// stage lets the bridge write in a form, and takes what it wrote. The feed and the registry stay for as long as all does.
func stage(t, all *testing.T, f form) *scene {
	t.Helper()
	dir := all.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{Shards: 2, EventsPerSegment: 24, BlockEvents: 6, Blobs: 16, Mix: mix})
	if err != nil {
		t.Fatal(err)
	}
	l := &liveFeed{feed, dir}
	if err := feed.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.grow(t, 4)
	cluster, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer cluster.Close()
	cl, err := kgo.NewClient(kgo.SeedBrokers(cluster.ListenAddrs()...))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	settings := map[string]string{"TOPIC": written, "EVENTS": "state", "KAFKA_BROKERS": cluster.ListenAddrs()[0], "SOURCE_URL": "file://" + dir, "TOPIC_PARTITIONS": "3",
		"TOPIC_REPLICATION": "1", "OFFSETS_LEASES": "2", "COMMIT_INTERVAL": "20ms", "POLL_INTERVAL": "20ms", "LOG_LEVEL": "error"}
	for _, s := range strings.Fields(f.settings) {
		name, value, _ := strings.Cut(s, "=")
		settings[name] = value
	}
	if settings["FORMAT"] == "avro" {
		registry := srfake.New()
		all.Cleanup(registry.Close)
		settings["REGISTRY_URL"] = registry.URL()
	}
	for name, value := range settings {
		t.Setenv("BRIDGE_"+name, value)
	}
	run := func(verb ...string) {
		t.Helper()
		if code, _, stderr := call(t, verb...); code != exitOK {
			t.Fatalf("bridge %s: exit code %d: %s", verb, code, stderr)
		}
	}
	run("run", "--once")
	if f.then != nil {
		f.then(t, l)
	}
	if settings["END_TIME"] == "" {
		l.grow(t, 2)
		run("run", "--once")
	}
	s := &scene{form: f, topic: written}
	switch {
	case f.name == "replay":
		run("replay", "--from", "2026-01-01T01:30:00Z", "--to", "2026-01-01T04:30:00Z", "--topic", f.topic)
		s.topic = f.topic
	case f.topic != "":
		s.topic = f.topic
	}
	s.copied = copyAll(t, cl)
	s.base = verification{feed: true, topic: s.topic}
	if err := s.base.settings(); err != nil {
		t.Fatal(err)
	}
	return s
}

// verify judges the scene as the verb does. Stateless forgets what the bridge says of itself.
func (s *scene) verify(t *testing.T, c *copied, feed, stateless bool) (rs []*report, of map[string]string) {
	t.Helper()
	v := s.base
	v.feed = feed
	if stateless {
		c = &copied{topics: c.topics}
	}
	v.cluster = c
	rs, err := v.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	of = map[string]string{}
	for _, r := range rs {
		for _, k := range r.Checks {
			if k.Status != notChecked && of[k.Name] != broken {
				of[k.Name] = k.Status
			}
		}
	}
	return rs, of
}

// victim returns the part of a copy that faults are put into.
func (s *scene) victim(c *copied) *victim {
	v := &victim{topic: s.topic, data: c.topics[s.topic], marks: c.topics[s.topic]}
	if aside := c.topics[s.topic+".resolved"]; aside != nil {
		v.marks = aside
	}
	times := map[string]bool{}
	for _, r := range v.marks.records[0] {
		if m := (verify.Record{Key: r.Key, Value: r.Value, Avro: s.base.avro}); m.MarkerTime() != "" {
			times[m.MarkerTime()] = true
		}
	}
	if v.times = slices.Sorted(maps.Keys(times)); len(v.times) < 3 {
		v.marks = nil
	}
	return v
}

// simulated writes a feed of some segments, the last of them open.
func simulated(t *testing.T, segments int) (dir string) {
	t.Helper()
	dir = t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{Shards: 2, EventsPerSegment: 24, BlockEvents: 6, Blobs: 16, Mix: mix})
	if err != nil {
		t.Fatal(err)
	}
	if err := feed.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	(&liveFeed{feed, dir}).grow(t, segments)
	return dir
}
