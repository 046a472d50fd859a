package topics

import (
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/fakebroker"
)

// A topic that was created answers, and one that exists is no error.
func TestCreate(t *testing.T) {
	adm := fakebroker.Admin(t, fakebroker.New(t))
	for _, first := range []bool{true, false} {
		if have, created, err := Create(t.Context(), adm, "new", 3, 1, nil); err != nil || created != first ||
			have != 3 {
			t.Fatalf("%d partitions, created %v, %v", have, created, err)
		}
	}
}

// A broker that does not know a new topic yet is asked again: the bridge must not say that the topic was deleted.
func TestOpenBehindALaggingBroker(t *testing.T) {
	cluster := fakebroker.New(t)
	asked := 0
	cluster.ControlKey(int16(kmsg.DescribeConfigs), func(kreq kmsg.Request) (kmsg.Response, error, bool) {
		cluster.KeepControl()
		if asked++; asked%2 == 0 {
			return nil, nil, false
		}
		resp := kreq.ResponseKind().(*kmsg.DescribeConfigsResponse)
		for _, r := range kreq.(*kmsg.DescribeConfigsRequest).Resources {
			unknown := kmsg.NewDescribeConfigsResponseResource()
			unknown.ResourceType, unknown.ResourceName = r.ResourceType, r.ResourceName
			unknown.ErrorCode = kerr.UnknownTopicOrPartition.Code
			resp.Resources = append(resp.Resources, unknown)
		}
		return resp, nil, true
	})
	a := &Admin{
		Plan: Plan{Creation: Creation{Partitions: 2, Replication: 1}}, Now: time.Now,
		Log: slog.New(slog.DiscardHandler), Client: fakebroker.Client(t, cluster, kgo.MetadataMinAge(10*time.Millisecond)),
		Oldest: func(context.Context) (time.Time, bool, error) { return time.Time{}, false, nil },
	}
	if partitions, limit, err := a.Open(t.Context(), "new"); err != nil || partitions != 2 || limit != usualLimit {
		t.Errorf("%d partitions, %d bytes, %v", partitions, limit, err)
	}
	if asked != 2 {
		t.Errorf("asked %d times for the settings", asked)
	}
}

// A topic that the brokers reject is named, with their reason, for which there is advice.
func TestCreateIsRejected(t *testing.T) {
	adm := fakebroker.Admin(t, fakebroker.New(t))
	_, _, err := Create(t.Context(), adm, "new", 3, 9, nil)
	if !errors.Is(err, kerr.InvalidReplicationFactor) || !strings.Contains(err.Error(), "creating topic new") {
		t.Errorf("%v", err)
	}
}

// What a topic needs is in the request that creates it: an instance may be killed before a second one, and the brokers
// would delete history for good. Those here limit topics by age and by size, and delete nothing of a copy.
func TestCreateKeepsRecordsAtOnce(t *testing.T) {
	for name, c := range map[string]struct {
		plan   Plan
		oldest time.Duration // how old the feed's first event is; 0: there is none
		want   map[string]string
	}{
		"history is old": {Plan{}, 999 * 24 * time.Hour, map[string]string{retention: "-1"}},
		"a copy": {Plan{Copy: Scanned}, time.Minute, map[string]string{retention: "-1", retentionSize: "-1",
			cleanupPolicy: "delete"}},
		"a copy of an account without events": {Plan{Copy: Scanned}, 0,
			map[string]string{retention: "-1", retentionSize: "-1"}},
		"a repaired copy": {Plan{Copy: Repaired}, time.Minute, map[string]string{retention: "-1", retentionSize: "-1"}},
		"a table": {Plan{Creation: Creation{Table: true}, Copy: Scanned, Beside: true}, time.Minute,
			map[string]string{cleanupPolicy: "compact"}},
	} {
		t.Run(name, func(t *testing.T) {
			cluster := fakebroker.New(t, kfake.BrokerConfigs(map[string]string{"log.retention.bytes": "100"}))
			var second atomic.Int32
			cluster.ControlKey(int16(kmsg.IncrementalAlterConfigs), func(kmsg.Request) (kmsg.Response, error, bool) {
				cluster.KeepControl()
				second.Add(1)
				return nil, nil, false
			})
			c.plan.Creation.Partitions, c.plan.Creation.Replication = 2, 1
			cl := fakebroker.Client(t, cluster, kgo.MetadataMinAge(10*time.Millisecond),
				kgo.RecordPartitioner(kgo.ManualPartitioner()))
			a := &Admin{
				Plan: c.plan, Now: time.Now, Log: slog.New(slog.DiscardHandler), Client: cl,
				Oldest: func(context.Context) (time.Time, bool, error) {
					return time.Now().Add(-c.oldest), c.oldest > 0, nil
				},
			}
			if _, _, err := a.Open(t.Context(), "new"); err != nil {
				t.Fatal(err)
			}
			all, err := Read(t.Context(), a.admin(), "new")
			if err != nil {
				t.Fatal(err)
			}
			for setting, want := range c.want {
				if have := all["new"][setting]; have != want {
					t.Errorf("%s=%s, want %s", setting, have, want)
				}
			}
			if n := second.Load(); n > 0 {
				t.Errorf("%d more requests set what the topic needs", n)
			}
			if c.want[retentionSize] == "" { // no copy, or compacted, which these brokers delete from nevertheless
				return
			}
			for range 3 { // batches of some 70 bytes
				old := &kgo.Record{Topic: "new", Partition: 1, Key: []byte("k"), Timestamp: time.Unix(1, 0)}
				if err := cl.ProduceSync(t.Context(), old).FirstErr(); err != nil {
					t.Fatal(err)
				}
			}
			cluster.ApplyRetention()
			if start := cluster.PartitionInfo("new", 1).LogStartOffset; start > 0 {
				t.Errorf("retention has deleted %d records of 3", start)
			}
		})
	}
}
