package bridge

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/history"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
)

// tear commits a record of a lease and its cursor, as an instance that is gone then, and the brokers leave out the end.
func tear(t *testing.T, c *kfake.Cluster, o Options, lease int32) {
	t.Helper()
	cfg := o.lease()
	cfg.Instance, cfg.Now = "gone", time.Now
	view := offsets.NewView(cfg.Topic, int(o.Kafka.Leases))
	viewing, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- view.Run(viewing, o.Kafka.Client...) }()
	defer func() { stop(); <-ended }()
	l, err := offsets.Acquire(t.Context(), cfg, view, lease)
	must(t, err)
	defer l.Close(t.Context())
	fakebroker.LeaveOutEnds(t, c, fmt.Sprintf("%s-%d", cfg.Name, lease))
	tx, err := l.Begin()
	must(t, err)
	torn := []*kgo.Record{{Topic: topic, Key: []byte(`["torn"]`), Value: []byte("torn")}}
	must(t, tx.Mark(t.Context(), torn))
	cfg.TxnTimeout = 200 * time.Millisecond // until it stops reading back; the brokers have the former one
	if err := tx.Commit(t.Context(), l.Cursor(), nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("Commit = %v", err)
	}
}

// The owner of a lease is gone, and the brokers have left its last transaction open. A move ends it, though the lease
// has no shard in the segment that the move leads to: no view would pass it, nor would a consumer.
func TestMoveOverATornTransaction(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		move func(*testing.T, *offsets.Seized) error
		then func(*testing.T, *kfake.Cluster, *Options)
		data int
	}{
		"seek":  {seekEarliest, nil, 40},
		"reset": {reset, nil, 40},
		"reset, and another topic": {reset, func(t *testing.T, c *kfake.Cluster, o *Options) {
			_, err := admin(t, c).DeleteTopic(t.Context(), topic)
			must(t, err)
			o.Topics.Names = byTemplate(t, "other")
		}, 20},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m, f := simulated(t, feedsim.Spec{Shards: 1})
			must(t, f.Append(t.Context(), 20, nil))
			c := broker(t)
			o, _ := over(t, c, m)
			must(t, runOnce(t, o))
			tear(t, c, o, 1)
			s := seize(t, o)
			must(t, test.move(t, s))
			s.Close(t.Context())
			written := topic
			if test.then != nil {
				test.then(t, c, &o)
				written = "other"
			}
			must(t, runOnce(t, o))
			if data, _ := consumeAll(t, c, []string{written}); data != test.data {
				t.Errorf("%d records, want %d", data, test.data)
			}
			ends, err := admin(t, c).ListEndOffsets(t.Context(), written)
			must(t, err)
			stable, err := admin(t, c).ListCommittedOffsets(t.Context(), written)
			must(t, err)
			for p := range int32(partitions) {
				end, _ := ends.Lookup(written, p)
				if s, _ := stable.Lookup(written, p); s.Offset != end.Offset {
					t.Errorf("consumers wait at offset %d of partition %d, which ends at %d", s.Offset, p, end.Offset)
				}
			}
		})
	}
}

func reset(t *testing.T, s *offsets.Seized) error { return s.Reset(t.Context()) }

func seekEarliest(t *testing.T, s *offsets.Seized) error {
	target, err := history.ParseTarget("earliest")
	must(t, err)
	return s.Seek(t.Context(), target.Move)
}
