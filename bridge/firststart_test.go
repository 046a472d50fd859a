package bridge

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
	"blobfeed/internal/catalog"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/fakebroker"
)

// mostSteps is how many requests a first start makes until it delivers.
const mostSteps = 30

// A first start may be killed before any of its requests. The next one completes it: the topic keeps old records, and
// each event comes once.
func TestFirstStartIsKilled(t *testing.T) {
	t.Parallel()
	step := int64(1)
	if testing.Short() {
		step = 3
	}
	for n := int64(1); ; n += step {
		c := broker(t)
		o, _ := options(t, c, realFeed)
		hard, kill := context.WithCancel(t.Context())
		var steps atomic.Int64
		c.Control(func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			switch kmsg.Key(req.Key()) {
			case kmsg.CreateTopics, kmsg.DescribeConfigs, kmsg.IncrementalAlterConfigs, kmsg.ListOffsets, kmsg.JoinGroup,
				kmsg.InitProducerID, kmsg.Produce, kmsg.EndTxn:
				if steps.Add(1) == n && hard.Err() == nil {
					kill()
					return nil, errors.New("the instance is dead"), true
				}
			}
			return nil, nil, false
		})
		must(t, New(o).Run(hard, hard))
		killed := hard.Err() != nil
		kill()
		if o.Instance = "two"; killed {
			must(t, runOnce(t, o))
		}
		if have := settingOf(t, c, topic, "retention.ms"); have != "-1" {
			t.Fatalf("killed at request %d: retention.ms=%s", n, have)
		}
		if data, _ := consume(t, c, promises()...); data != realEvents {
			t.Fatalf("killed at request %d: %d records", n, data)
		}
		if !killed || n >= mostSteps {
			return
		}
	}
}

// settingOf returns a setting of a topic, "" if it has that of the brokers.
func settingOf(t *testing.T, c *kfake.Cluster, topic, setting string) string {
	t.Helper()
	configs, err := fakebroker.Admin(t, c).DescribeTopicConfigs(t.Context(), topic)
	must(t, err)
	rc, err := configs.On(topic, nil)
	must(t, err, rc.Err)
	for _, c := range rc.Configs {
		if c.Key == setting && c.Source == kmsg.ConfigSourceDynamicTopicConfig {
			return c.MaybeValue()
		}
	}
	return ""
}

// A former version created a topic first, and then made it keep history. If it was killed between, the next start does
// the second step, also if the state says that it was done before. What an operator has set stays.
func TestRetentionIsMended(t *testing.T) {
	t.Parallel()
	policy, week := "delete", "604800000"
	for name, tc := range map[string]struct {
		own     map[string]*string
		started bool
		scans   bool
		want    string
	}{
		"before the first frontier": {map[string]*string{"cleanup.policy": &policy}, false, false, "-1"},
		"behind a frontier":         {map[string]*string{"cleanup.policy": &policy}, true, false, "-1"},
		"for a scan":                {map[string]*string{"cleanup.policy": &policy}, false, true, "-1"},
		"an operator's topic":       {nil, false, false, ""},
		"an operator's limit":       {map[string]*string{"cleanup.policy": &policy, "retention.ms": &week}, false, false, week},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := broker(t)
			o, _ := options(t, c, realFeed)
			if tc.started {
				must(t, runOnce(t, o))
				unset := []kadm.AlterConfig{{Op: kadm.DeleteConfig, Name: "retention.ms"}}
				_, err := admin(t, c).AlterTopicConfigs(t.Context(), unset, topic)
				must(t, err)
			} else {
				createTopic(t, c, topic, partitions, tc.own)
			}
			o.Feed.RescanGaps = tc.scans
			must(t, runOnce(t, o))
			if have := settingOf(t, c, topic, "retention.ms"); have != tc.want {
				t.Errorf("retention.ms=%s", have)
			}
			if have := settingOf(t, c, topic, "retention.bytes"); tc.scans && have != "-1" {
				t.Errorf("retention.bytes=%s", have)
			}
		})
	}
}

// A topic whose retention deletes records is no copy of the account. A start with a scan rejects it unless the user
// says that it may be limited; one that repairs topics by a scan always does.
func TestCopyIsLimited(t *testing.T) {
	t.Parallel()
	week, gigabyte := "604800000", "1073741824"
	for name, tc := range map[string]struct {
		own    map[string]*string
		change func(*Options)
		want   string // of the error; "": none
	}{
		"initial scan": {map[string]*string{"retention.ms": &week},
			func(o *Options) { o.Feed.InitialScan = ScanYes }, "BRIDGE_TOPIC_LIMITED"},
		"export": {nil, func(o *Options) { o.Feed.InitialScan = ScanOnly }, "retention.ms=-1,retention.bytes=-1"},
		"by size": {map[string]*string{"retention.ms": new("-1"), "retention.bytes": &gigabyte},
			func(o *Options) { o.Feed.InitialScan = ScanYes }, "retention.bytes=" + gigabyte},
		"limited": {map[string]*string{"retention.ms": &week},
			func(o *Options) { o.Feed.InitialScan, o.Topics.Limited = ScanYes, true }, ""},
		"rescan": {map[string]*string{"retention.ms": &week},
			func(o *Options) { o.Feed.RescanGaps, o.Topics.Limited = true, true }, "BRIDGE_ON_GAP=continue"},
		"compacted": {map[string]*string{"cleanup.policy": new("compact")},
			func(o *Options) { o.Feed.InitialScan, o.Records.Markers = ScanYes, envelope.MarkersOff }, ""},
		"no scan": {map[string]*string{"retention.ms": &week}, func(*Options) {}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := broker(t)
			o, _ := options(t, c, realFeed)
			tc.change(&o)
			createTopic(t, c, topic, partitions, tc.own)
			o.Now = time.Now
			err := catalog.New(o.Catalog(), fakebroker.Client(t, c)).Prepare(t.Context(), nil)
			var settings *plain.SettingsError
			if tc.want == "" && err != nil ||
				tc.want != "" && (!errors.As(err, &settings) || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("%v", err)
			}
		})
	}
}
