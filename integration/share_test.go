//go:build integration

package integration

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/verify"
)

// A share group works through new files as docs/consumers.md says: two workers get every file of the real feed. A file
// that they release is delivered once more, and none of an aborted transaction is delivered.
func TestWorkQueue(t *testing.T) {
	t.Parallel()
	brokers := shared.KafkaBrokers
	name, topic := names(t, brokers, -1)
	settings := []string{"NAME=" + name, "TOPIC=" + topic, "KAFKA_BROKERS=" + strings.Join(brokers, ","),
		"SOURCE_URL=" + fileURL(t, "../testdata/real-2020"), "EVENT_TYPES=BlobCreated", "RESOLVED_TO=off"}
	runOnce(t, settings...)
	var files []verify.Record
	c := consume(t, brokers, topic)
	c.onNote = func(r verify.Record) { files = append(files, r) }
	c.drain(t)
	abort(t, topic, files)
	var want []string
	for _, r := range files {
		want = append(want, string(r.Key))
	}
	slices.Sort(want)

	readCommitted(t, client(t, brokers), name+"-workers")
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	var workers []*kgo.Client
	for range 2 {
		workers = append(workers, client(t, brokers, kgo.ConsumeTopics(topic), kgo.ShareGroup(name+"-workers")))
	}
	var done []string
	var released *kgo.Record
	for again := false; len(done) < len(want) || !again; {
		for _, w := range workers {
			poll, stop := context.WithTimeout(ctx, time.Second)
			fetches := w.PollFetches(poll)
			stop()
			if ctx.Err() != nil {
				t.Fatalf("%d of %d files came; the released one came again: %t", len(done), len(want), again)
			}
			for r := range fetches.RecordsAll() {
				if released == nil {
					released = r
					r.Ack(kgo.AckRelease)
					continue
				}
				again = again || r.Partition == released.Partition && r.Offset == released.Offset
				done = append(done, string(r.Key))
				r.Ack(kgo.AckAccept)
			}
		}
	}
	slices.Sort(done)
	if !slices.Equal(done, want) {
		t.Errorf("%d files were done, want %d", len(done), len(want))
	}
}

// readCommitted sets what the page says of a share group.
func readCommitted(t *testing.T, cl *kgo.Client, group string) {
	t.Helper()
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeGroupConfig, group
	for name, value := range map[string]string{
		"share.isolation.level": "read_committed", "share.auto.offset.reset": "earliest",
	} {
		c := kmsg.NewIncrementalAlterConfigsRequestResourceConfig()
		c.Name, c.Value = name, &value
		resource.Configs = append(resource.Configs, c)
	}
	req := kmsg.NewPtrIncrementalAlterConfigsRequest()
	req.Resources = append(req.Resources, resource)
	answer, err := req.RequestWith(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	if err := kerr.ErrorForCode(answer.Resources[0].ErrorCode); err != nil {
		t.Fatal(err)
	}
}
