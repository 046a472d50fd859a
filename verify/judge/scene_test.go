package judge

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
	simulated "blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// scene is what a form has made.
type scene struct {
	form
	*copied
	topic string
	base  *verification // by the settings of the form
}

// spec is of small feeds. They have no changes of properties, of which feedsim says a former content type that no
// event had.
var spec = feedsim.Spec{Shards: 2, EventsPerSegment: 24, BlockEvents: 6, Blobs: 16, Mix: feedsim.Mix{
	Created: 60, Deleted: 12, Undeleted: 1, Metadata: 5, Tags: 4, Tier: 4, Async: 2, Snapshot: 4,
}}

// open starts brokers for a form, and a feed. The feed and the registry stay for as long as all does.
func (f *form) open(t, all *testing.T) (l *liveFeed, cl *kgo.Client, settings map[string]string) {
	t.Helper()
	dir := all.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), spec)
	if err != nil {
		t.Fatal(err)
	}
	l = &liveFeed{feed, dir}
	if err := feed.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	l.grow(t, 4)
	cluster := fakebroker.New(t)
	settings = map[string]string{
		"TOPIC": written, "EVENTS": "state", "KAFKA_BROKERS": cluster.ListenAddrs()[0], "SOURCE_URL": "file://" + dir,
		"TOPIC_PARTITIONS": "3", "TOPIC_REPLICATION": "1", "OFFSETS_LEASES": "2", "COMMIT_INTERVAL": "20ms",
		"POLL_INTERVAL": "20ms", "LOG_LEVEL": "error",
	}
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
	return l, fakebroker.Client(t, cluster), settings
}

// stage lets the bridge write in a form, and takes what it wrote.
func stage(t, all *testing.T, f form) *scene {
	t.Helper()
	l, cl, settings := f.open(t, all)
	if f.scan != "" {
		scan(t, f.scan, listed())
	} else {
		deliver(t)
	}
	if f.then != nil {
		f.then(t, l)
	}
	if settings["END_TIME"] == "" {
		l.grow(t, 2)
		deliver(t)
	}
	s := &scene{form: f, topic: written}
	switch {
	case f.name == "replay":
		again(t, "2026-01-01T01:30:00Z", "2026-01-01T04:30:00Z", f.topic)
		s.topic = f.topic
	case f.topic != "":
		s.topic = f.topic
	}
	s.copied = copyAll(t, cl)
	s.base = bySettings(t, s.topic)
	return s
}

// listed returns an account whose clock is in the segment of the feed that is open when it is listed. The marker after
// that segment is too early.
func listed() *simulated.Account {
	at := time.Date(2026, 1, 1, 4, 35, 0, 0, time.UTC)
	a := simulated.New(func() time.Time { return at })
	for i := range 60 {
		a.Put([]string{"photos", "logs"}[i%2], inventory.Blob{Name: fmt.Sprintf("listed/%02d", i), Length: int64(i)})
	}
	return a
}

// verify judges the scene as the verb does. Stateless forgets what the bridge says of itself.
func (s *scene) verify(t *testing.T, c *copied, feed, stateless bool) (rs []*Report, of map[string]string) {
	t.Helper()
	v := *s.base
	v.ReadFeed = feed
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
			if k.Status != NotChecked && of[k.Name] != Broken {
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
