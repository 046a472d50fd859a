package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
)

// read returns what is committed to a topic, by partition.
func read(t *testing.T, c *kfake.Cluster, topic string) (records []*kgo.Record) {
	t.Helper()
	return readBy(t, []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)}, topic)
}

// readBy does so with the options of a client.
func readBy(t *testing.T, options []kgo.Opt, topic string) (records []*kgo.Record) {
	t.Helper()
	cl, err := kgo.NewClient(append(slices.Clone(options), kgo.ConsumeTopics(topic), kgo.KeepControlRecords(),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()))...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	listed, err := kadm.NewClient(cl).ListCommittedOffsets(t.Context(), topic)
	if err != nil {
		t.Fatal(err)
	}
	ends := listed.Offsets()
	left := func() (n int) {
		ends.Each(func(o kadm.Offset) {
			if o.At > 0 {
				n++
			}
		})
		return n
	}
	for left() > 0 {
		fs := cl.PollFetches(t.Context())
		if err := fs.Err(); err != nil {
			t.Fatal(err)
		}
		fs.EachRecord(func(r *kgo.Record) {
			end, _ := ends.Lookup(topic, r.Partition)
			if !r.Attrs.IsControl() && r.Offset < end.At {
				records = append(records, r)
			}
			if r.Offset+1 >= end.At {
				ends.Delete(topic, r.Partition)
			}
		})
	}
	slices.SortStableFunc(records, func(a, b *kgo.Record) int { return int(a.Partition - b.Partition) })
	return records
}

func header(r *kgo.Record, name string) string {
	for _, h := range r.Headers {
		if h.Key == name {
			return string(h.Value)
		}
	}
	return ""
}

// positions returns where in the feed the events come from, sorted, and the markers.
func positions(records []*kgo.Record) (events []string, markers []*kgo.Record) {
	for _, r := range records {
		if r.Key == nil {
			markers = append(markers, r)
		} else {
			events = append(events, header(r, "position"))
		}
	}
	slices.Sort(events)
	return events, markers
}

// newer returns the records that came since, in order.
func newer(before, after []*kgo.Record) (records []*kgo.Record) {
	ends := map[int32]int64{}
	for _, r := range before {
		ends[r.Partition] = max(ends[r.Partition], r.Offset+1)
	}
	return slices.DeleteFunc(after, func(r *kgo.Record) bool { return r.Offset < ends[r.Partition] })
}

// A wrong offset in a feed is not damage, and what is not there is named once.
func TestDumpOfAWrongPlace(t *testing.T) {
	t.Parallel()
	setenv(t, "BRIDGE_SOURCE_URL", "file://"+abs(t, "../../testdata/real-2020"))
	const chunk = "log/00/2020/05/29/1600/00000.avro"
	for args, want := range map[string]string{
		"--at 2020/05/29/1600/00/00000/2435/8": "no block begins at offset 2435; blocks near it begin at 2434",
		"--at 2435 " + chunk:                   "no block begins at offset 2435; blocks near it begin at 2434",
		"--at 2020/05/29/1500/00/00000/2434/8": "the feed has no segment 2020/05/29/1500: bridge dump lists",
		"--at 2020/05/29/1600/00/00007/2434/8": "the feed has no chunk log/00/2020/05/29/1600/00007.avro: bridge dump",
		"--segment 2020/05/29/1500":            "the feed has no segment 2020/05/29/1500: bridge dump lists those that it has\n",
	} {
		code, _, stderr := call(t, append([]string{"dump"}, strings.Fields(args)...)...)
		if code != exitFailed || !strings.Contains(stderr, want) {
			t.Errorf("dump %s: exit code %d: %s", args, code, stderr)
		}
	}
}

// Damage is named once, with what is next: dump has just read the feed, so it is not only in what run received.
func TestDumpOfDamage(t *testing.T) {
	t.Parallel()
	copied(t, damage)
	for _, args := range []string{
		"--at 2434 log/00/2020/05/27/1500/00000.avro", "--at 2020/05/27/1500/00/00000/2434/0",
		"--segment 2020/05/27/1500",
	} {
		code, _, stderr := call(t, append([]string{"dump"}, strings.Fields(args)...)...)
		if code != exitFailed || strings.Count(stderr, "2434") != 1 || strings.Contains(stderr, "bridge dump") ||
			!strings.HasPrefix(stderr, "bridge: log/00/2020/05/27/1500/00000.avro, offset 2434: the block can't be ") ||
			!strings.Contains(stderr, "the feed itself has this damage, as read just now: copy the chunk again; ") ||
			!strings.Contains(stderr, "set BRIDGE_ON_ERROR=dead_letter") {
			t.Errorf("dump %s: exit code %d: %s", args, code, stderr)
		}
	}
}
