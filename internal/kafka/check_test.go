package kafka

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/check"
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
		{"progress fits", Topic{Largest: 10_000, Grows: 500_000}, map[string]string{"max.message.bytes": "1048588", "min.insync.replicas": "2"}, 3, check.OK, ""},
		{"topics will not fit", Topic{Largest: 10_000, Grows: 600_000}, map[string]string{"max.message.bytes": "1048588", "min.insync.replicas": "2"}, 3, check.Warning,
			"lower BRIDGE_TOPIC_LIMIT, or kafka-configs.sh --bootstrap-server k:9092 --alter --topic t --add-config max.message.bytes=1200000"},
		{"progress does not fit", Topic{Largest: 10_000}, map[string]string{"max.message.bytes": "8192", "min.insync.replicas": "2"}, 3, check.Failed, "max.message.bytes=40000"},
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
	n := &Needs{Group: "b", Session: 10 * time.Second, Txn: "b-", TxnTimeout: time.Minute, Topics: []Topic{
		{Name: "t", Keyless: true, EventTimes: true, Create: true, Partitions: 6, Replication: -1},
		{Name: "b.offsets", Read: true, Compacted: true, Create: true, Partitions: 16, Replication: -1},
	}}
	change(c, n)
	var found check.Findings
	if err := Check(t.Context(), c, func(context.Context) (*Needs, error) { return n, nil }, time.Now(), &found); err != nil {
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
		{"a topic that is gone", nil, func(_ *Client, n *Needs) { n.Topics[0] = Topic{Name: "gone", Records: true, Partitions: 3} },
			"topic: gone does not exist; its records are gone: create it with 3 partitions"},
		{"too short a session", nil, func(_ *Client, n *Needs) { n.Session = 5 * time.Second },
			"group: the brokers permit no sessions of 5s: their group.min.session.timeout.ms is 6s; set BRIDGE_SESSION_TIMEOUT=6s"},
		{"too long a session", nil, func(_ *Client, n *Needs) { n.Session = time.Hour },
			"group: the brokers permit no sessions of 1h0m0s: their group.max.session.timeout.ms is 5m0s; set BRIDGE_SESSION_TIMEOUT=5m0s"},
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

// Ids that are permitted one by one are looked at one by one, and the command names the literal ids: b-* would be
// those of a
// bridge named b-eu, too.
func TestCheckTransactionalIDs(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	refuse := map[string]bool{}
	fake.ControlKey(int16(kmsg.DescribeTransactions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
		for _, id := range req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs {
			s := kmsg.NewDescribeTransactionsResponseTransactionState()
			s.TransactionalID, s.ErrorCode = id, kerr.TransactionalIDNotFound.Code
			if refuse[id] {
				s.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
			}
			resp.TransactionStates = append(resp.TransactionStates, s)
		}
		return resp, nil, true
	})
	leases := func(_ *Client, n *Needs) { n.Leases = 3 }
	if failed := failures(look(t, fake.ListenAddrs(), leases)); len(failed) > 0 {
		t.Errorf("with all: %q", failed)
	}
	refuse["b-1"], refuse["b-2"] = true, true
	failed := failures(look(t, fake.ListenAddrs(), leases))
	if len(failed) != 1 || !strings.HasPrefix(failed[0], "acl: WRITE on 2 of 3 transactional ids of leases is missing; ") ||
		!strings.HasSuffix(failed[0], "--operation Write --transactional-id b-1 --transactional-id b-2") {
		t.Errorf("without two: %q", failed)
	}
	fake.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
		return resp, nil, true
	})
	failed = failures(look(t, fake.ListenAddrs(), leases))
	if len(failed) != 1 || !strings.HasSuffix(failed[0], "--transactional-id b-0 --transactional-id b-1 --transactional-id b-2 --transactional-id b-check") {
		t.Errorf("without any: %q", failed)
	}
}

// A topic that the brokers are to create is there at the first start if they have that enabled; without a right to look, who
// knows.
func TestCheckAskedTopic(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(2))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	for enabled, want := range map[string]check.Status{"true": check.OK, "false": check.Failed, "": check.Warning} {
		fake.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
			resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
			resource := kmsg.NewDescribeConfigsResponseResource()
			resource.ResourceType, resource.ResourceName = kmsg.ConfigResourceTypeBroker, req.(*kmsg.DescribeConfigsRequest).Resources[0].ResourceName
			setting := kmsg.NewDescribeConfigsResponseResourceConfig()
			setting.Name, setting.Value = "auto.create.topics.enable", &enabled
			resource.Configs = append(resource.Configs, setting)
			if enabled == "" {
				resource.Configs, resource.ErrorCode = nil, kerr.ClusterAuthorizationFailed.Code
			}
			resp.Resources = append(resp.Resources, resource)
			return resp, nil, true
		})
		found := look(t, fake.ListenAddrs(), func(_ *Client, n *Needs) { n.Topics[0].Asked, n.Topics[0].Partitions = true, -1 })
		if !slices.ContainsFunc(found, func(f check.Finding) bool {
			return f.Status == want && strings.HasPrefix(f.Detail, "t does not exist; run asks the brokers for it (auto.create.topics.enable=")
		}) || want == check.OK && found.Count(check.Failed) > 0 {
			t.Errorf("%q: %+v", enabled, found)
		}
	}
}

// Of many topics only what is wrong is told.
func TestCheckManyTopics(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(2))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	found := look(t, fake.ListenAddrs(), func(_ *Client, n *Needs) {
		for i := range 20 {
			n.Topics = append(n.Topics, Topic{Name: fmt.Sprint("many-", i), Create: i != 7, Partitions: 1, Replication: -1})
		}
	})
	if failed := failures(found); len(failed) != 1 || !strings.HasPrefix(failed[0], "topic: many-7 does not exist") || len(found) > 10 {
		t.Errorf("%+v", found)
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
	if got, want := ck.grant("Write", "--transactional-id", "b-0", "b-1"), fmt.Sprint("kafka-acls.sh --bootstrap-server k:9092 --command-config admin.properties --add --allow-principal 'User:$ConnectionString' ",
		"--operation Write --transactional-id b-0 --transactional-id b-1"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	ck.client.SASL = nil
	if got, want := ck.client.Tool("kafka-configs.sh"), "kafka-configs.sh --bootstrap-server k:9092"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Below version 2 a transaction can be left open by a request that comes late. That is a warning, which says what it
// means.
func TestCheckTransactionVersion(t *testing.T) {
	fake, err := kfake.NewCluster(kfake.NumBrokers(1), kfake.SeedTopics(3, "t"))
	if err != nil {
		t.Fatal(err)
	}
	defer fake.Close()
	for version, want := range map[int16]check.Status{0: check.Warning, 1: check.Warning, 2: check.OK} {
		have := check.OK
		ck := &checker{Findings: new(check.Findings), txnVersion: version, needs: &Needs{Txn: "b-", TxnTimeout: time.Minute}}
		if ck.cl, err = kgo.NewClient(kgo.SeedBrokers(fake.ListenAddrs()...)); err != nil {
			t.Fatal(err)
		}
		ck.transactions(t.Context())
		ck.cl.Close()
		for _, f := range *ck.Findings {
			if f.Status != check.OK {
				have = f.Status
			}
			if f.Status == check.Warning && !strings.Contains(f.Do, "transaction.version=2") {
				t.Errorf("%+v", f)
			}
		}
		if have != want {
			t.Errorf("version %d: %v, want %v", version, have, want)
		}
	}
	answer := kmsg.NewApiVersionsResponse()
	feature := kmsg.NewApiVersionsResponseFinalizedFeature()
	feature.Name, feature.MaxVersionLevel = "transaction.version", 2
	answer.FinalizedFeatures = append(answer.FinalizedFeatures, feature)
	if have := transactionVersion(&answer); have != 2 {
		t.Errorf("the brokers say 2, read %d", have)
	}
}
