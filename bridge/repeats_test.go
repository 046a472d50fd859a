package bridge

import (
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"

	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/verify"
)

// When progress is lost, the records of the topic must not come twice without a word. The start is rejected, and each
// way out that the error names works: to continue at a place, or to deliver everything again.
func TestProgressIsLost(t *testing.T) {
	t.Parallel()
	for name, lose := range map[string]func(*testing.T, *kfake.Cluster){
		"state deleted": func(t *testing.T, c *kfake.Cluster) {
			_, err := admin(t, c).DeleteTopics(t.Context(), plain.StateTopic("test"))
			must(t, err)
		},
		"state emptied": func(t *testing.T, c *kfake.Cluster) { // as by retention
			ends, err := admin(t, c).ListEndOffsets(t.Context(), plain.StateTopic("test"))
			must(t, err)
			at := kadm.Offsets{}
			ends.Each(func(o kadm.ListedOffset) {
				at.Add(kadm.Offset{Topic: o.Topic, Partition: o.Partition, At: o.Offset})
			})
			_, err = admin(t, c).DeleteRecords(t.Context(), at)
			must(t, err)
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := broker(t)
			o, r := options(t, c, realFeed)
			must(t, runOnce(t, o))
			lose(t, c)
			o.Observer = Observers{r}
			refused(t, o, "topic "+topic+" holds records", "bridge seek --to <time> --yes", "bridge reset --yes")
			refused(t, o, "holds records") // the first attempt is no progress
			if data, _ := consume(t, c, verify.NewUnique()); data != realEvents {
				t.Errorf("%d records", data)
			}
			to, err := history.ParseTarget("2020/05/29/2100") // the last segment
			must(t, err)
			s := seize(t, o)
			must(t, s.Seek(t.Context(), to.Move))
			s.Close(t.Context())
			before := r.Emitted
			must(t, runOnce(t, o))
			if n := r.Emitted - before; n == 0 || n > realEvents/2 {
				t.Errorf("%d records behind the place", n)
			}
			lose(t, c)
			refused(t, o, "holds records")
			s = seize(t, o)
			must(t, s.Reset(t.Context()))
			s.Close(t.Context())
			before = r.Emitted
			must(t, runOnce(t, o))
			if n := r.Emitted - before; n != realEvents {
				t.Errorf("%d records after a reset", n)
			}
		})
	}
}

// A topic that bridges of other accounts write to holds records before a first start, which is right. If none of the
// others claims it, they may be this bridge's own.
func TestProgressIsLostInASharedTopic(t *testing.T) {
	t.Parallel()
	c := broker(t)
	a, _ := named(t, c, "a", topic)
	a.Topics.Shared = true
	must(t, runOnce(t, a))
	_, err := admin(t, c).DeleteTopics(t.Context(), plain.StateTopic("a"))
	must(t, err)
	refused(t, a, "holds records")
	b, _ := named(t, c, "b", topic)
	b.Topics.Shared = true
	createTopic(t, c, "b.offsets", b.Kafka.Leases, map[string]*string{"cleanup.policy": new("compact")})
	s := seize(t, b) // the operator says that the records are not b's
	must(t, s.Reset(t.Context()))
	s.Close(t.Context())
	must(t, runOnce(t, b))
	d, _ := named(t, c, "d", topic)
	d.Topics.Shared = true
	must(t, runOnce(t, d)) // b claims the topic
}
