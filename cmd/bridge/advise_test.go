package main

import (
	"context"
	"io"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/status"
)

// What check advises is also in the log and on the status page of run, and in the last line of a verb.
func TestErrorsCarryAdvice(t *testing.T) {
	t.Parallel()
	const advice = "connection refused: start the brokers, or set BRIDGE_KAFKA_BROKERS to their addresses"
	for name, value := range map[string]string{
		"SOURCE_URL": "file://" + abs(t, "../../testdata/real-2020"), "KAFKA_BROKERS": "127.0.0.1:1",
		"HTTP_ADDR": "127.0.0.1:0", "LOG_FORMAT": "json",
	} {
		setenv(t, "BRIDGE_"+name, value)
	}
	if code, _, stderr := call(t, "status"); code != exitFailed || !strings.Contains(stderr, advice) {
		t.Errorf("status: exit code %d: %s", code, stderr)
	}
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	var stderr safeBuffer
	go func() { ended <- execute(ctx, environ(t), []string{"run"}, io.Discard, &stderr) }()
	await(t, "the log says so", func() bool { return strings.Contains(stderr.String(), advice) })
	_, address, _ := strings.Cut(stderr.String(), `"msg":"serving HTTP","address":"`)
	address, _, _ = strings.Cut(address, `"`)
	await(t, "the status page says so", func() bool {
		return slices.ContainsFunc(statusAt(t, address).Errors, func(f status.Failure) bool {
			return strings.Contains(f.Error+": "+f.Remedy, advice)
		})
	})
	stop()
	<-ended
}

// A verb that needs more than run names it: check would find nothing. A replay without its rights ends, and does not
// wait for them.
func TestRightsOfVerbs(t *testing.T) {
	t.Parallel()
	c := deliveredReal(t)
	denied := kerr.TopicAuthorizationFailed.Code
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		asked := req.(*kmsg.ListOffsetsRequest).Topics
		if len(asked) != 1 || asked[0].Topic != changes {
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		topic := kmsg.ListOffsetsResponseTopic{Topic: changes}
		for _, p := range asked[0].Partitions {
			topic.Partitions = append(topic.Partitions,
				kmsg.ListOffsetsResponseTopicPartition{Partition: p.Partition, ErrorCode: denied})
		}
		resp.Topics = append(resp.Topics, topic)
		return resp, nil, true
	})
	c.ControlKey(int16(kmsg.DescribeGroups), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeGroupsResponse)
		for _, name := range req.(*kmsg.DescribeGroupsRequest).Groups {
			resp.Groups = append(resp.Groups,
				kmsg.DescribeGroupsResponseGroup{Group: name, ErrorCode: kerr.GroupAuthorizationFailed.Code})
		}
		return resp, nil, true
	})
	const replay = "replay --from 2020-01-20T00:00:00Z --to 2020-05-29T18:00:00Z --topic again"
	for args, want := range map[string]string{
		"find container0/blob0": "bridge find needs Read on the topics of records and dead letters: see ",
		"verify":                "bridge verify needs Read and DescribeConfigs on the topics of records, markers and ",
		"status":                "bridge status needs Read on the topic of progress, and Describe on the group: see ",
		replay: "of group b.replay.again: GROUP_AUTHORIZATION_FAILED: Not authorized to access group: Group authorization " +
			"failed: permit what BRIDGE_NAME=b.replay.again BRIDGE_TOPIC=again bridge config --format acls prints",
	} {
		ctx, stop := context.WithTimeout(t.Context(), 20*time.Second)
		var stderr safeBuffer
		code := execute(ctx, environ(t), strings.Fields(args), io.Discard, &stderr)
		stop()
		if code != exitFailed || !strings.Contains(stderr.String(), want) {
			t.Errorf("%s: exit code %d: %s", args, code, stderr.String())
		}
	}
}
