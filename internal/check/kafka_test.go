package check

import (
	"errors"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/bridge"
	"blobfeed/integration/pki"
	"blobfeed/internal/kafka"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/topics"
)

// scene is a bridge named b that writes to t.
type scene struct {
	client  kafka.Client
	options bridge.Options
	topics  []topic
}

// look checks the brokers for a scene.
func look(t *testing.T, brokers []string, change func(*scene)) (found Findings) {
	t.Helper()
	s := &scene{
		client: kafka.Client{Brokers: brokers, ID: "test", Compression: "none", Buffered: 1},
		options: bridge.Options{
			Name:   "b",
			Topics: bridge.Topics{Create: topics.Creation{Replication: -1}},
			Kafka:  bridge.Kafka{Session: 10 * time.Second, Transactional: true, TxnTimeout: time.Minute},
		},
		topics: []topic{
			{Topic: topics.Topic{Name: "t", Partitions: 6}, create: true},
			{Topic: topics.Topic{Name: "b.offsets", Kind: topics.State, Partitions: 16}, create: true},
		},
	}
	change(s)
	ck, err := newChecker(&Bridge{Kafka: &s.client, Options: &s.options}, time.Now(), &found)
	if err != nil {
		t.Fatal(err)
	}
	defer ck.cl.Close()
	ck.certificate()
	if ck.reach(t.Context()) {
		ck.uses(t.Context(), s.topics)
	}
	return found
}

func failures(found Findings) (all []string) {
	for _, f := range found {
		if f.Status == Failed {
			all = append(all, f.Check+": "+f.Detail+"; "+f.Do)
		}
	}
	return all
}

func TestCheck(t *testing.T) {
	fake := fakebroker.New(t, kfake.NumBrokers(2), kfake.SeedTopics(3, "t"))
	for _, tc := range []struct {
		name   string
		fault  *kerr.Error // of InitProducerID
		change func(*scene)
		want   string // of the one failure; "": none
	}{
		{"sound", nil, func(*scene) {}, ""},
		{"at least once", nil, func(s *scene) { s.options.Kafka.Transactional = false }, ""},
		{"missing topic", nil, func(s *scene) { s.topics[0].Name, s.topics[0].create = "missing", false },
			"topic: missing does not exist"},
		{"missing offsets topic", nil, func(s *scene) {
			s.topics[1].create, s.options.Topics.Create.Flags = false, "--bootstrap-server k:9092"
		}, "topic: b.offsets does not exist; set BRIDGE_TOPIC_CREATE=explicit, or create it: kafka-topics.sh " +
			"--bootstrap-server k:9092 --create --topic b.offsets --partitions 16 --config cleanup.policy=compact"},
		{"a topic that is gone", nil, func(s *scene) {
			s.topics[0] = topic{Topic: topics.Topic{Name: "gone", Partitions: 3}, had: true}
		}, "topic: gone does not exist: its records are gone; create it with 3 partitions"},
		{"too short a session", nil, func(s *scene) { s.options.Kafka.Session = 5 * time.Second },
			"group: the brokers permit no sessions of 5s: their group.min.session.timeout.ms is 6s; " +
				"set BRIDGE_SESSION_TIMEOUT=6s"},
		{"too long a session", nil, func(s *scene) { s.options.Kafka.Session = time.Hour },
			"group: the brokers permit no sessions of 1h0m0s: their group.max.session.timeout.ms is 5m0s; " +
				"set BRIDGE_SESSION_TIMEOUT=5m0s"},
		{"no such replication", nil, func(s *scene) { s.options.Topics.Create.Replication = 9 },
			"topic: b.offsets does not exist and can't be created: INVALID_REPLICATION_FACTOR"},
		{"one broker of two is named wrong", nil, func(s *scene) { // run uses the other
			s.client.Brokers = append(slices.Clone(s.client.Brokers), "127.0.0.1:1")
		}, ""},
		{"all brokers are named wrong", nil, func(s *scene) { s.client.Brokers = []string{"127.0.0.1:1"} },
			"kafka: 127.0.0.1:1: connect: connection refused"},
		{"a topic that was created again", nil, func(s *scene) {
			s.topics[0] = topic{Topic: topics.Topic{Name: "t", Partitions: 6}, had: true}
		}, "topic: t has 3 partitions and had 6: it was deleted and created again, and its records are gone; give it as " +
			"many again to continue with new records: kafka-topics.sh "},
		{"transactions take too long", kerr.InvalidTransactionTimeout, func(*scene) {},
			"transactions: the brokers permit no transactions of 1m0s"},
		{"no transactions", kerr.UnsupportedVersion, func(*scene) {}, "transactions: transactions are not available"},
		{"no idempotence", kerr.ClusterAuthorizationFailed, func(s *scene) { s.options.Kafka.Transactional = false },
			"acl: IDEMPOTENT_WRITE"},
	} {
		if tc.fault != nil { // once
			fake.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
				resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
				resp.ErrorCode = tc.fault.Code
				return resp, nil, true
			})
		}
		failed := failures(look(t, fake.ListenAddrs(), tc.change))
		wants := 0
		if tc.want != "" {
			wants = 1
		}
		if len(failed) != wants || wants == 1 && !strings.HasPrefix(failed[0], tc.want) {
			t.Errorf("%s: %q", tc.name, failed)
		}
	}
}

// Brokers that have just started load their transactions first: that passes, and is no failure.
func TestCheckWaitsForTransactions(t *testing.T) {
	fake := fakebroker.New(t)
	var asked atomic.Int32
	fake.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		if asked.Add(1) > 5 { // more than the client retries
			return nil, nil, false
		}
		resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
		resp.ErrorCode = kerr.CoordinatorLoadInProgress.Code
		return resp, nil, true
	})
	if failed := failures(look(t, fake.ListenAddrs(), func(*scene) {})); len(failed) > 0 {
		t.Errorf("after %d requests: %q", asked.Load(), failed)
	}
}

// Transactional ids can be permitted one by one, so each is checked. The command names the literal ids: b-* would
// permit those of a bridge named b-eu, too.
func TestCheckTransactionalIDs(t *testing.T) {
	fake := fakebroker.New(t)
	refuse, old := map[string]bool{}, false
	fake.ControlKey(int16(kmsg.FindCoordinator), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		find, resp := req.(*kmsg.FindCoordinatorRequest), req.ResponseKind().(*kmsg.FindCoordinatorResponse)
		if find.CoordinatorType != 1 ||
			!slices.ContainsFunc(find.CoordinatorKeys, func(id string) bool { return id == "b-2" }) {
			return nil, nil, false
		}
		host, port, err := net.SplitHostPort(fake.ListenAddrs()[0])
		if err != nil {
			return nil, err, true
		}
		for _, id := range find.CoordinatorKeys { // as Kafka answers, of one of the two that are refused
			c := kmsg.NewFindCoordinatorResponseCoordinator()
			c.Key, c.Host = id, host
			n, _ := strconv.Atoi(port)
			c.Port = int32(n)
			if id == "b-2" && refuse[id] {
				c.ErrorCode, c.NodeID = kerr.TransactionalIDAuthorizationFailed.Code, -1
			}
			resp.Coordinators = append(resp.Coordinators, c)
		}
		return resp, nil, true
	})
	fake.ControlKey(int16(kmsg.DescribeTransactions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		fake.KeepControl()
		resp := req.ResponseKind().(*kmsg.DescribeTransactionsResponse)
		if old {
			return nil, errors.New("brokers before Kafka 3.0 do not know this request"), true
		}
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
	leases := func(s *scene) { s.options.Kafka.Leases = 3 }
	if failed := failures(look(t, fake.ListenAddrs(), leases)); len(failed) > 0 {
		t.Errorf("with all: %q", failed)
	}
	refuse["b-1"], refuse["b-2"] = true, true
	failed := failures(look(t, fake.ListenAddrs(), leases))
	const two = "acl: WRITE on 2 of 3 transactional ids of leases is missing; "
	if len(failed) != 1 || !strings.HasPrefix(failed[0], two) ||
		!strings.HasSuffix(failed[0], "--operation Write --transactional-id b-1 --transactional-id b-2") {
		t.Errorf("without two: %q", failed)
	}
	fake.ControlKey(int16(kmsg.InitProducerID), refuseID)
	failed = failures(look(t, fake.ListenAddrs(), leases))
	const both = "--transactional-id b-1 --transactional-id b-2 --transactional-id b-check"
	if len(failed) != 1 || !strings.HasPrefix(failed[0], two) || !strings.HasSuffix(failed[0], both) {
		t.Errorf("without two and that of check: %q", failed)
	}
	clear(refuse)
	fake.ControlKey(int16(kmsg.InitProducerID), refuseID)
	found := look(t, fake.ListenAddrs(), leases)
	if found.Count(Failed) > 0 || !slices.ContainsFunc(found, func(f Finding) bool {
		return f.Status == Warning && strings.HasPrefix(f.Detail, "WRITE on transactional id b-check is missing: only") &&
			strings.HasSuffix(f.Do, "--operation Write --transactional-id b-check")
	}) {
		t.Errorf("without that of check: %+v", found)
	}
	fake.ControlKey(int16(kmsg.InitProducerID), refuseID)
	old = true
	failed = failures(look(t, fake.ListenAddrs(), leases))
	const all = "--transactional-id b-0 --transactional-id b-1 --transactional-id b-2 --transactional-id b-check"
	if len(failed) != 1 || !strings.HasSuffix(failed[0], all) {
		t.Errorf("of brokers that do not answer: %q", failed)
	}
}

// refuseID denies a producer its transactional id.
func refuseID(req kmsg.Request) (kmsg.Response, error, bool) {
	resp := req.ResponseKind().(*kmsg.InitProducerIDResponse)
	resp.ErrorCode = kerr.TransactionalIDAuthorizationFailed.Code
	return resp, nil, true
}

// A topic that the brokers are to create is there at the first start if they have that enabled. Without a right to read
// that setting, it is unknown.
func TestCheckAskedTopic(t *testing.T) {
	fake := fakebroker.New(t, kfake.NumBrokers(2))
	for enabled, want := range map[string]Status{"true": OK, "false": Failed, "": Warning} {
		fake.ControlKey(int16(kmsg.DescribeConfigs), func(req kmsg.Request) (kmsg.Response, error, bool) {
			resp := req.ResponseKind().(*kmsg.DescribeConfigsResponse)
			resource := kmsg.NewDescribeConfigsResponseResource()
			resource.ResourceType = kmsg.ConfigResourceTypeBroker
			resource.ResourceName = req.(*kmsg.DescribeConfigsRequest).Resources[0].ResourceName
			setting := kmsg.NewDescribeConfigsResponseResourceConfig()
			setting.Name, setting.Value = "auto.create.topics.enable", &enabled
			resource.Configs = append(resource.Configs, setting)
			if enabled == "" {
				resource.Configs, resource.ErrorCode = nil, kerr.ClusterAuthorizationFailed.Code
			}
			resp.Resources = append(resp.Resources, resource)
			return resp, nil, true
		})
		found := look(t, fake.ListenAddrs(), func(s *scene) { s.topics[0].asked, s.topics[0].Partitions = true, -1 })
		if !slices.ContainsFunc(found, func(f Finding) bool {
			return f.Status == want &&
				strings.HasPrefix(f.Detail, "t does not exist; run asks the brokers for it (auto.create.topics.enable=")
		}) || want == OK && found.Count(Failed) > 0 {
			t.Errorf("%q: %+v", enabled, found)
		}
	}
}

// Of many topics only those with a problem are listed.
func TestCheckManyTopics(t *testing.T) {
	fake := fakebroker.New(t, kfake.NumBrokers(2))
	found := look(t, fake.ListenAddrs(), func(s *scene) {
		for i := range 20 {
			many := topics.Topic{Name: fmt.Sprint("many-", i), Partitions: 1}
			s.topics = append(s.topics, topic{Topic: many, create: i != 7})
		}
	})
	failed := failures(found)
	if len(failed) != 1 || !strings.HasPrefix(failed[0], "topic: many-7 does not exist") || len(found) > 10 {
		t.Errorf("%+v", found)
	}
}

// A warning that many topics have is one line with their number, each failure a line with its command.
func TestCheckFoldsWarnings(t *testing.T) {
	var all, want Findings
	var of []string
	for i := range 30 {
		name := fmt.Sprint("many-", i)
		all.Add("topic", OK, name+" has 1 partition", "")
		all.Add("settings", Warning, "topic "+name+" has one replica", "alter "+name)
		of = append(of, name, name)
	}
	all.Add("acl", Failed, "Write on a is missing", "permit a")
	all.Add("acl", Failed, "Write on b is missing", "permit b")
	all.Add("settings", Warning, "topic b is small", "")
	of = append(of, "a", "b", "b")
	want.Add("settings", Warning, "topic many-0 has one replica (also many-1, many-2 and 27 more)", "alter many-0")
	want = append(want, all[len(all)-3:]...)
	if got := folded(all, of); !slices.Equal(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
}

// A certificate that ends soon is a warning before it ends.
func TestCheckCertificate(t *testing.T) {
	mine, err := pki.New("mine")
	if err != nil {
		t.Fatal(err)
	}
	for life, want := range map[time.Duration]Status{-time.Minute: Failed, time.Hour: Warning, 8 * 24 * time.Hour: OK} {
		pair, err := mine.Issue("bridge", life)
		if err != nil {
			t.Fatal(err)
		}
		cert, key, err := pair.Write(t.TempDir(), "client")
		if err != nil {
			t.Fatal(err)
		}
		found := look(t, []string{"127.0.0.1:1"},
			func(s *scene) { s.client.TLS = &kafka.TLS{CertFile: cert, KeyFile: key} })
		if found[0].Check != "certificate" || found[0].Status != want {
			t.Errorf("%s left: %+v", life, found[0])
		}
	}
}

// A command can be pasted into a shell as it is printed.
func TestGrant(t *testing.T) {
	plain := &kafka.SASL{Mechanism: "PLAIN", Credentials: func() (string, string, error) {
		return "$ConnectionString", "secret", nil
	}}
	ck := &checker{client: &kafka.Client{Brokers: []string{"k:9092"}, SASL: plain}}
	if got, want := ck.grant("Write", "--transactional-id", "b-0", "b-1"), fmt.Sprint("kafka-acls.sh ",
		"--bootstrap-server k:9092 --command-config admin.properties --add --allow-principal 'User:$ConnectionString' ",
		"--operation Write --transactional-id b-0 --transactional-id b-1"); got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
	ck.client.SASL = nil
	mine, err := pki.New("mine")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := mine.Issue("bridge", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, key, err := pair.Write(t.TempDir(), "client")
	if err != nil {
		t.Fatal(err)
	}
	ck.client.TLS = &kafka.TLS{CertFile: cert, KeyFile: key}
	if got := ck.grant("Read", "--group", "b"); !strings.Contains(got, "--allow-principal User:CN=bridge ") &&
		!strings.Contains(got, "--allow-principal 'User:CN=bridge' ") {
		t.Errorf("of a client certificate: %s", got)
	}
	ck.client.TLS = nil
	if got, want := ck.client.ToolFlags(), "--bootstrap-server k:9092"; got != want {
		t.Errorf("%s\nwant %s", got, want)
	}
}

// Below version 2 a request that arrives late can leave a transaction open. That is a warning that says what to do.
func TestCheckTransactionVersion(t *testing.T) {
	fake := fakebroker.New(t, kfake.SeedTopics(3, "t"))
	for version, want := range map[int16]Status{0: Warning, 1: Warning, 2: OK} {
		have := OK
		o := &bridge.Options{Name: "b", Kafka: bridge.Kafka{Transactional: true, TxnTimeout: time.Minute}}
		ck := &checker{Findings: new(Findings), txnVersion: version, bridge: o}
		ck.cl = fakebroker.Client(t, fake)
		ck.transactions(t.Context())
		for _, f := range *ck.Findings {
			if f.Status != OK {
				have = f.Status
			}
			if f.Status == Warning && !strings.Contains(f.Do, "transaction.version=2") {
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
