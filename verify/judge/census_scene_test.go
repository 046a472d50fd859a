package judge

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"blobfeed/bridge"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
	simulated "blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
)

// world is an account with a feed, and a bridge that has scanned the account and delivers the feed.
type world struct {
	*simulated.Account
	feed  *feedsim.Feed
	now   time.Time // the service's
	store *simulated.Store
	cl    *kgo.Client
}

// change overwrites some blobs, deletes some, and creates some.
func (w *world) change() {
	for i := range 20 {
		w.Put("photos", inventory.Blob{Name: blobNamed(3 * i).Name, Length: 1000})
		w.Delete("logs", blobNamed(3*i+1).Name)
		w.Put("logs", inventory.Blob{Name: fmt.Sprintf("new/%d", i), Length: 7})
	}
	w.Put("$web", inventory.Blob{Name: "log", BlobType: "AppendBlob", Length: 1})
	w.Put("$web", inventory.Blob{Name: "log.old", BlobType: "AppendBlob", Length: 2})
}

// publish lets the changes get into the feed, and ends its segment.
func (w *world) publish(t *testing.T) {
	t.Helper()
	_, err := w.Publish(t.Context(), w.feed, nil, nil)
	if err := errors.Join(err, w.feed.Next(t.Context())); err != nil {
		t.Fatal(err)
	}
	w.now = w.now.Add(time.Hour)
}

// verify compares the topics, of c if it is not nil, with the account.
func (w *world) verify(t *testing.T, c *copied, set func(v *verification)) (rs []*Report, text string) {
	t.Helper()
	v := bySettings(t, "")
	v.ReadFeed, v.ReadAccount, v.Feed.Inventory = false, true, w.store
	if c != nil {
		v.cluster = c
	}
	if set != nil {
		set(v)
	}
	rs, err := v.run(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return rs, shown(t, rs)
}

// newWorld lets a bridge with some settings scan an account of 120 blobs.
func newWorld(t *testing.T, settings string) *world {
	t.Helper()
	return newWorldAt(t, settings, 5*time.Minute)
}

// newWorldAt lets it do so at some time in the first segment of the feed.
func newWorldAt(t *testing.T, settings string, after time.Duration) *world {
	t.Helper()
	dir := t.TempDir()
	feed, err := feedsim.New(feedsim.Dir(dir), feedsim.Spec{Shards: 2})
	if err != nil {
		t.Fatal(err)
	}
	if err := feed.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	cluster := fakebroker.New(t)
	env := map[string]string{
		"TOPIC": written, "KAFKA_BROKERS": cluster.ListenAddrs()[0], "SOURCE_URL": "file://" + dir,
		"TOPIC_PARTITIONS": "3", "TOPIC_REPLICATION": "1", "OFFSETS_LEASES": "2", "COMMIT_INTERVAL": "20ms",
		"POLL_INTERVAL": "20ms", "LOG_LEVEL": "error", "TOPIC_LIMIT": "10",
	}
	for _, s := range strings.Fields(settings) {
		name, value, _ := strings.Cut(s, "=")
		env[name] = value
	}
	if env["FORMAT"] == "avro" || env["KEY_FORMAT"] == "avro" {
		registry := srfake.New()
		t.Cleanup(registry.Close)
		env["REGISTRY_URL"] = registry.URL()
	}
	for name, value := range env {
		t.Setenv("BRIDGE_"+name, value)
	}
	start := time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	w := &world{feed: feed, now: start.Add(after), cl: fakebroker.Client(t, cluster)}
	w.Account = simulated.New(func() time.Time { return w.now })
	w.store = &simulated.Store{Account: w.Account}
	for i := range 120 {
		w.Put([]string{"photos", "logs", "$web"}[i%3], blobNamed(i))
	}
	w.Record()
	scan(t, bridge.ScanYes, w.Account)
	return w
}

func blobNamed(i int) inventory.Blob {
	return inventory.Blob{Name: fmt.Sprintf("dir/%03d ü%%20.bin", i), Length: int64(i)}
}

// lose takes a blob away: all records of the key of a live one, as if they had never been written.
func lose(c *copied) (key string) {
	for name, x := range c.topics {
		if strings.HasSuffix(name, ".resolved") {
			continue
		}
		for p, rs := range x.records {
			for _, r := range rs {
				if header(r, "scan") != "" && r.Key != nil && strings.Contains(string(r.Key), "119") ||
					strings.Contains(string(r.Key), "new/9") {
					key = string(r.Key)
				}
			}
			var left []*kgo.Record
			for _, r := range rs {
				if string(r.Key) != key || key == "" {
					left = append(left, r)
				}
			}
			if x.records[p] = left; key != "" {
				return key
			}
		}
	}
	return ""
}
