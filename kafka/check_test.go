package kafka

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/check"
)

// A topic's settings are judged by what its records need.
func TestJudge(t *testing.T) {
	const year = "31536000000"
	for _, tc := range []struct {
		name     string
		topic    Topic
		values   map[string]string
		replicas int
		status   check.Status
		says     string // "": nothing but ok
	}{
		{"sound", Topic{EventTimes: true, Keyless: true}, map[string]string{"cleanup.policy": "delete", "retention.ms": "-1", "min.insync.replicas": "2",
			"message.timestamp.before.max.ms": "9223372036854775807"}, 3, check.OK, ""},
		{"cursors would be deleted", Topic{Compacted: true}, map[string]string{"cleanup.policy": "compact, delete", "min.insync.replicas": "2"}, 3, check.Failed,
			"kafka-configs.sh --bootstrap-server k:9092 --alter --topic t --add-config cleanup.policy=compact"},
		{"cursors stay", Topic{Compacted: true}, map[string]string{"cleanup.policy": "compact", "min.insync.replicas": "2"}, 3, check.OK, ""},
		{"markers have no key", Topic{Keyless: true}, map[string]string{"cleanup.policy": "compact,delete", "min.insync.replicas": "2"}, 3, check.Failed, "BRIDGE_RESOLVED_TO=off"},
		{"no markers", Topic{}, map[string]string{"cleanup.policy": "compact", "min.insync.replicas": "2"}, 3, check.OK, ""},
		{"never in sync", Topic{}, map[string]string{"min.insync.replicas": "3"}, 2, check.Failed, "min.insync.replicas=1"},
		{"one replica", Topic{}, map[string]string{"min.insync.replicas": "1"}, 1, check.Warning, "replication factor"},
		{"one in sync", Topic{}, map[string]string{"min.insync.replicas": "1"}, 3, check.Warning, "min.insync.replicas=2"},
		{"unclean", Topic{}, map[string]string{"unclean.leader.election.enable": "true", "min.insync.replicas": "2"}, 3, check.Warning, "unclean.leader.election.enable=false"},
		{"time of arrival", Topic{EventTimes: true}, map[string]string{"message.timestamp.type": "LogAppendTime", "message.timestamp.before.max.ms": year, "retention.ms": year,
			"cleanup.policy": "delete", "min.insync.replicas": "2"}, 3, check.Warning, "message.timestamp.type=CreateTime"},
		{"old events are refused", Topic{EventTimes: true}, map[string]string{"message.timestamp.before.max.ms": year, "min.insync.replicas": "2"}, 3, check.Failed, "message.timestamp.before.max.ms=9223372036854775807"},
		{"older brokers say it so", Topic{EventTimes: true}, map[string]string{"message.timestamp.difference.max.ms": year, "min.insync.replicas": "2"}, 3, check.Failed, "difference.max.ms"},
		{"old events are deleted", Topic{EventTimes: true}, map[string]string{"cleanup.policy": "delete", "retention.ms": year, "min.insync.replicas": "2"}, 3, check.Warning, "retention.ms=-1"},
		{"progress has no event times", Topic{Compacted: true}, map[string]string{"cleanup.policy": "compact", "retention.ms": year, "min.insync.replicas": "2"}, 3, check.OK, ""},
	} {
		var found check.Findings
		tc.topic.Name = "t"
		judge(&tc.topic, tc.values, tc.replicas, "kafka-configs.sh --bootstrap-server k:9092", &found)
		if len(found) != 1 || found[0].Status != tc.status || !strings.Contains(found[0].Do, tc.says) || (tc.says == "") != (found[0].Do == "") {
			t.Errorf("%s: %+v", tc.name, found)
		}
	}
}

// look checks a broker for a bridge named b that writes to t.
func look(t *testing.T, brokers []string, change func(*Client, *Needs)) check.Findings {
	t.Helper()
	c := &Client{Brokers: brokers, ID: "test", Compression: "none", Buffered: 1}
	n := &Needs{Group: "b", Txn: "b-", TxnTimeout: time.Minute, Topics: []Topic{
		{Name: "t", Keyless: true, EventTimes: true, Create: true, Partitions: 6, Replication: -1},
		{Name: "b.offsets", Read: true, Compacted: true, Create: true, Partitions: 16, Replication: -1},
	}}
	change(c, n)
	var found check.Findings
	if err := Check(t.Context(), c, n, time.Now(), &found); err != nil {
		t.Fatal(err)
	}
	return found
}

func failures(found check.Findings) (all []string) {
	for _, f := range found {
		if f.Status == check.Failed {
			all = append(all, f.Check+": "+f.Detail+"; "+f.Do)
		}
	}
	return all
}

func TestCheck(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(2), kfake.SeedTopics(3, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	for _, tc := range []struct {
		name   string
		fault  *kerr.Error // of InitProducerID
		change func(*Client, *Needs)
		want   string // of the one failure; "": none
	}{
		{"sound", nil, func(*Client, *Needs) {}, ""},
		{"at least once", nil, func(_ *Client, n *Needs) { n.Txn = "" }, ""},
		{"missing topic", nil, func(_ *Client, n *Needs) { n.Topics[0].Name, n.Topics[0].Create = "missing", false }, "topic: missing does not exist"},
		{"missing offsets topic", nil, func(_ *Client, n *Needs) { n.Topics[1].Create = false }, "topic: b.offsets does not exist; create it with cleanup.policy=compact and 16 partitions"},
		{"no such replication", nil, func(_ *Client, n *Needs) { n.Topics[1].Replication = 9 }, "topic: b.offsets does not exist and can't be created: INVALID_REPLICATION_FACTOR"},
		{"one broker of two is named wrong", nil, func(c *Client, _ *Needs) { c.Brokers = append(slices.Clone(c.Brokers), "127.0.0.1:1") }, "kafka: 127.0.0.1:1"},
		{"transactions take too long", kerr.InvalidTransactionTimeout, func(*Client, *Needs) {}, "transactions: the brokers permit no transactions of 1m0s"},
		{"no transactions", kerr.UnsupportedVersion, func(*Client, *Needs) {}, "transactions: transactions are not available"},
		{"no idempotence", kerr.ClusterAuthorizationFailed, func(_ *Client, n *Needs) { n.Txn = "" }, "acl: IDEMPOTENT_WRITE"},
	} {
		if tc.fault != nil { // once
			fake.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
				resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
				resp.ErrorCode = tc.fault.Code
				return resp, nil, true
			})
		}
		failed := failures(look(t, fake.ListenAddrs(), tc.change))
		if len(failed) > 1 || (len(failed) == 1) != (tc.want != "") || len(failed) == 1 && !strings.HasPrefix(failed[0], tc.want) {
			t.Errorf("%s: %q", tc.name, failed)
		}
	}
}

// A certificate that ends is told before it does.
func TestCheckCertificate(t *testing.T) {
	mine := authority(t, "mine")
	for life, want := range map[time.Duration]check.Status{-time.Minute: check.Failed, time.Hour: check.Warning, 8 * 24 * time.Hour: check.OK} {
		cert, key, err := issue(t, mine, "bridge", life).Write(t.TempDir(), "client")
		if err != nil {
			t.Fatal(err)
		}
		found := look(t, []string{"127.0.0.1:1"}, func(c *Client, _ *Needs) { c.TLS = &TLS{CertFile: cert, KeyFile: key} })
		if found[0].Check != "certificate" || found[0].Status != want {
			t.Errorf("%s left: %+v", life, found[0])
		}
	}
}

// What is to be pasted into a shell means there what it means here.
func TestQuote(t *testing.T) {
	for word, want := range map[string]string{"User:bridge": "User:bridge", "User:CN=a b": "'User:CN=a b'", "a'b;$(c)": `'a'\''b;$(c)'`, "": "''"} {
		if got := quote(word); got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	ck := &checker{client: &Client{Brokers: []string{"k:9092"}, SASL: &SASL{Mechanism: "PLAIN", Credentials: func() (string, string, error) { return "$ConnectionString", "secret", nil }}}}
	if got, want := ck.grant("Write", "--transactional-id", "b-", true), fmt.Sprint("kafka-acls.sh --bootstrap-server k:9092 --command-config admin.properties --add --allow-principal 'User:$ConnectionString' ",
		"--operation Write --transactional-id b- --resource-pattern-type prefixed"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	ck.client.SASL = nil
	if got, want := ck.tool("kafka-configs.sh"), "kafka-configs.sh --bootstrap-server k:9092"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}
