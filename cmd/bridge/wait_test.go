package main

import (
	"context"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// request sends a request, and fails the test if the brokers refuse it.
func request[R kmsg.Response](t *testing.T, cl *kgo.Client, req kmsg.Request) R {
	t.Helper()
	resp, err := cl.Request(t.Context(), req)
	if err != nil {
		t.Fatal(err)
	}
	return resp.(R)
}

// An instance that was killed is a member of the group until its session ends: the next one says that it waits, and so
// does each bridge of a process.
func TestRunSaysThatItWaitsForTheGroup(t *testing.T) {
	t.Parallel()
	for name, more := range map[string]string{"alone": "", "of a fleet": "bridges: {b: {}}\n"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			testWaitForTheGroup(t, more)
		})
	}
}

func testWaitForTheGroup(t *testing.T, file string) {
	c := clusterFor(t)
	cl, err := kgo.NewClient(kgo.SeedBrokers(c.ListenAddrs()...), kgo.ClientID("b-killed"))
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	join := kmsg.NewPtrJoinGroupRequest()
	join.Group, join.ProtocolType, join.SessionTimeoutMillis, join.RebalanceTimeoutMillis = "b", "consumer", 30_000, 30_000
	meta := kmsg.NewConsumerMemberMetadata()
	join.Protocols = []kmsg.JoinGroupRequestProtocol{{Name: "blobfeed-leases", Metadata: meta.AppendTo(nil)}}
	joined := request[*kmsg.JoinGroupResponse](t, cl, join)
	join.MemberID = joined.MemberID
	joined = request[*kmsg.JoinGroupResponse](t, cl, join)
	sync := kmsg.NewPtrSyncGroupRequest()
	sync.Group, sync.MemberID, sync.Generation = "b", joined.MemberID, joined.Generation
	if r := request[*kmsg.SyncGroupResponse](t, cl, sync); joined.ErrorCode != 0 || r.ErrorCode != 0 {
		t.Fatal(joined.ErrorCode, r.ErrorCode)
	}
	setenv(t, httpAddr, "127.0.0.1:0")
	var log safeBuffer
	ctx, cancel := context.WithCancel(t.Context())
	env, args, ended := environ(t), []string{"run", "--once"}, make(chan int)
	if file != "" {
		args = append(args, "--config", fleetFile(t, file))
		delete(env, "BRIDGE_NAME")
		delete(env, "BRIDGE_TOPIC")
	}
	go func() { ended <- execute(ctx, env, args, &log, &log) }()
	await(t, "it says that it waits", func() bool {
		return strings.Contains(log.String(), "waiting for the other members of the group")
	})
	page := serving.FindStringSubmatch(log.String())[1]
	if file != "" {
		page += "/bridges/b"
	}
	await(t, "its page says whom it waits for", func() bool {
		return strings.Contains(statusAt(t, page).Verdict.Text, "joins the group and waits for killed")
	})
	cancel()
	<-ended
	if text := log.String(); strings.Contains(text, "leases assigned") ||
		!strings.Contains(text, `"members":["killed"],"session_timeout":"6s"`) {
		t.Error(text)
	}
}
