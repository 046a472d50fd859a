package judge

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
)

// account is a bridge that shares a topic with others, and its feed.
type account struct {
	*liveFeed
	name, id string
	base     *verification // by the settings of its bridge
}

// sharedTopic is what the bridges of two accounts wrote to one topic. Their events differ by nothing but the account.
type sharedTopic struct {
	*copied
	alpha, bravo *account
}

// shareTopic lets two bridges write, in turns. The first one shares from its first run on, or from its second.
func shareTopic(t *testing.T, first string, settings ...string) *sharedTopic {
	t.Helper()
	cluster := fakebroker.New(t)
	for _, s := range append([]string{
		"TOPIC=" + written, "EVENTS=state", "KAFKA_BROKERS=" + cluster.ListenAddrs()[0], "TOPIC_PARTITIONS=3",
		"TOPIC_SHARED=" + first, "TOPIC_REPLICATION=1", "OFFSETS_LEASES=2", "COMMIT_INTERVAL=20ms",
		"POLL_INTERVAL=20ms", "LOG_LEVEL=error",
	}, settings...) {
		name, value, _ := strings.Cut(s, "=")
		t.Setenv("BRIDGE_"+name, value)
	}
	s := &sharedTopic{alpha: newAccount(t, "alpha"), bravo: newAccount(t, "bravo")}
	for range 2 {
		for _, a := range []*account{s.alpha, s.bravo} {
			a.deliver(t)
			t.Setenv("BRIDGE_TOPIC_SHARED", "true")
		}
	}
	for _, a := range []*account{s.alpha, s.bravo} {
		a.use(t)
		a.base = bySettings(t, written)
		a.base.Feed.ID = a.id
	}
	cl := fakebroker.Client(t, cluster)
	s.copied = copyAll(t, cl)
	return s
}

func newAccount(t *testing.T, name string) *account {
	t.Helper()
	dir := t.TempDir()
	own := spec
	own.Account = name
	feed, err := feedsim.New(feedsim.Dir(dir), own)
	if err := errors.Join(err, feed.Open(t.Context())); err != nil {
		t.Fatal(err)
	}
	return &account{liveFeed: &liveFeed{feed, dir}, name: name, id: name + ".blob.core.windows.net"}
}

func (a *account) use(t *testing.T) {
	t.Setenv("BRIDGE_NAME", a.name)
	t.Setenv("BRIDGE_SOURCE_URL", "file://"+a.dir)
}

// deliver fills segments, and delivers them as what is in Azure under the account's name.
func (a *account) deliver(t *testing.T) {
	t.Helper()
	a.grow(t, 3)
	a.use(t)
	deliverAs(t, a.id)
}

// judge judges one account by its state, or by its feed, too.
func (s *sharedTopic) judge(t *testing.T, a *account, c *copied, feed bool) (rs []*Report, of map[string]string) {
	t.Helper()
	v := *a.base
	v.cluster, v.ReadFeed = c, feed
	if !feed {
		v.Feed.ID = "" // BRIDGE_SOURCE_URL is not asked for
	}
	rs, err := v.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	of = map[string]string{}
	for _, k := range rs[0].Checks {
		of[k.Name] = k.Status
	}
	return rs, of
}

func (a *account) wrote(r *kgo.Record) bool {
	if r.Key == nil {
		return header(r, "feed") == a.id
	}
	return strings.HasSuffix(header(r, "ce_source"), "/"+a.name)
}

// put puts a fault into what an account has in the topic, and leaves the records of the other where they are.
func (s *sharedTopic) put(c *copied, a *account, x fault) bool {
	v := &victim{topic: written, data: c.topics[written], marks: c.topics[written]}
	if aside := c.topics[written+".resolved"]; aside != nil {
		v.marks = aside
	}
	others := map[*tape]map[int32][]*kgo.Record{v.data: {}, v.marks: {}}
	for x, rest := range others {
		for p, rs := range x.records {
			var own []*kgo.Record
			for _, r := range rs {
				if a.wrote(r) {
					own = append(own, r)
				} else {
					rest[p] = append(rest[p], r)
				}
			}
			x.records[p] = own
		}
	}
	times := map[string]bool{}
	for _, r := range v.marks.records[0] {
		if r.Key == nil {
			times[header(r, "resolved")] = true
		}
	}
	v.times = slices.Sorted(maps.Keys(times))
	done := x.put(v)
	for x, rest := range others {
		for p := range rest {
			x.records[p] = merged(x.records[p], rest[p])
		}
	}
	return done
}

// merged puts the records of two lists into the order of their offsets, and keeps that of each list.
func merged(a, b []*kgo.Record) (all []*kgo.Record) {
	for len(a) > 0 && len(b) > 0 {
		if b[0].Offset < a[0].Offset {
			all, b = append(all, b[0]), b[1:]
		} else {
			all, a = append(all, a[0]), a[1:]
		}
	}
	return append(append(all, a...), b...)
}
