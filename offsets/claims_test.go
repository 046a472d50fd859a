package offsets

import (
	"context"
	"encoding/json"
	"errors"
	"net"
	"slices"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/fakebroker"
)

// states is a cluster in which tests write states of bridges record by record.
type states struct {
	*kfake.Cluster
	t   *testing.T
	cl  *kgo.Client
	adm *kadm.Client
}

func newStates(t *testing.T) *states {
	t.Helper()
	c := fakebroker.New(t)
	cl := fakebroker.Client(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	return &states{c, t, cl, kadm.NewClient(cl)}
}

func (s *states) create(name string) {
	s.t.Helper()
	if _, err := s.adm.CreateTopic(s.t.Context(), 2, 1, nil, plain.StateTopic(name)); err != nil {
		s.t.Fatal(err)
	}
}

// write writes a document some times; nil is a tombstone.
func (s *states) write(name string, partition int32, key string, doc any, times int) {
	s.t.Helper()
	value, err := json.Marshal(doc)
	if err != nil {
		s.t.Fatal(err)
	}
	if doc == nil {
		value = nil
	}
	var rs []*kgo.Record
	for range times {
		rs = append(rs, &kgo.Record{Topic: plain.StateTopic(name), Partition: partition, Key: []byte(key), Value: value})
	}
	if err := s.cl.ProduceSync(s.t.Context(), rs...).FirstErr(); err != nil {
		s.t.Fatal(err)
	}
}

// claims returns the topics by the bridge that claims them.
func (s *states) claims(own string) (topics map[string][]string, hidden []error, err error) {
	claims, hidden, err := Claims(s.t.Context(), s.adm, own, kgo.SeedBrokers(s.ListenAddrs()...))
	topics = map[string][]string{}
	for _, c := range claims {
		topics[c.Name] = c.Topics
	}
	return topics, hidden, err
}

func frontierOf(topic string) *Frontier {
	return &Frontier{
		Version: Version, Feed: "feed", Topics: map[string]int32{topic: 1},
		Settings: map[string]string{"BRIDGE_TOPIC": topic},
	}
}

// Every state with a frontier is a claim, but the caller's own, however long ago the frontier was written.
func TestClaims(t *testing.T) {
	s := newStates(t)
	for _, name := range []string{"own", "old", "reset", "gone", "fresh"} {
		s.create(name)
	}
	s.write("own", 0, keyFrontier, frontierOf("mine"), 1)
	s.write("old", 0, keyFrontier, frontierOf("first"), 1)
	s.write("old", 0, keyFrontier, frontierOf("t"), 1)
	s.write("old", 0, keyCursor, &Cursor{Version: Version}, tail+1)
	for _, name := range []string{"reset", "gone"} {
		s.write(name, 0, keyFrontier, frontierOf("t"), 1)
	}
	s.write("reset", 0, keyFrontier, &Frontier{Version: Version, Epoch: 1, Reset: true}, 1)
	s.write("gone", 0, keyFrontier, nil, 1)
	topics, hidden, err := s.claims("own")
	if err != nil || len(hidden) > 0 || len(topics) != 1 || !slices.Equal(topics["old"], []string{"t"}) {
		t.Errorf("%v, %v, %v", topics, hidden, err)
	}
}

// Compaction can remove the last record of a state. The answer of the leader proves its end, without a wait for a
// record that never comes.
func TestClaimWithoutALastRecord(t *testing.T) {
	s := newStates(t)
	topic := plain.StateTopic("a")
	if _, err := s.adm.CreateTopic(t.Context(), 1, 1, nil, topic); err != nil {
		t.Fatal(err)
	}
	s.write("a", 0, keyFrontier, &Frontier{Version: Version, Epoch: 1, Reset: true}, 1)
	fakebroker.EndsAt(s.Cluster, topic, 5, 5)
	if topics, hidden, err := s.claims("own"); err != nil || len(hidden) > 0 || len(topics) > 0 {
		t.Errorf("%v, %v, %v", topics, hidden, err)
	}
	state, err := ReadTo(t.Context(), topic, []int64{5}, kgo.SeedBrokers(s.ListenAddrs()...))
	if err != nil || state.Epoch != 1 {
		t.Errorf("%+v, %v", state, err)
	}
}

// Brokers that can't be reached hide no claim: else a bridge would begin in a topic that is another one's. It asks again.
func TestClaimsOfSilentBrokers(t *testing.T) {
	s := newStates(t)
	s.create("a")
	s.write("a", 0, keyFrontier, frontierOf("t"), 1)
	claims, hidden, err := Claims(t.Context(), s.adm, "own", kgo.SeedBrokers(s.ListenAddrs()...),
		kgo.Dialer(func(context.Context, string, string) (net.Conn, error) {
			return nil, kerr.SaslAuthenticationFailed
		}))
	if len(claims)+len(hidden) > 0 || !errors.Is(err, kerr.SaslAuthenticationFailed) {
		t.Errorf("%v, hidden %v, %v", claims, hidden, err)
	}
}

// A bridge claims a new topic of a template with its first record. The brokers may have ended that transaction in the
// topic, and not yet in the state: the claim counts.
func TestClaimBehindAnOpenTransaction(t *testing.T) {
	s := newStates(t)
	s.create("a")
	s.write("a", 0, keyFrontier, frontierOf("{container}"), 1)
	open := fakebroker.Client(t, s.Cluster, kgo.TransactionalID("slow"),
		kgo.RecordPartitioner(kgo.ManualPartitioner()))
	err := open.BeginTransaction()
	if err == nil {
		err = open.ProduceSync(t.Context(), &kgo.Record{Topic: plain.StateTopic("a"), Partition: 1, Key: []byte("?")}).FirstErr()
	}
	if err != nil {
		t.Fatal(err)
	}
	s.write("a", 1, keyCursor, &Cursor{Version: Version, Pins: map[string]Pin{"found": {Partitions: 1}}}, 1)
	ended := make(chan error, 1)
	s.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		s.KeepControl()
		if req.(*kmsg.ListOffsetsRequest).IsolationLevel == 1 { // how far can be read, is being asked
			s.DropControl()
			go func() { ended <- open.EndTransaction(t.Context(), kgo.TryCommit) }()
		}
		return nil, nil, false
	})
	topics, hidden, err := s.claims("own")
	if err != nil || len(hidden) > 0 || !slices.Contains(topics["a"], "found") {
		t.Errorf("%v, %v, %v", topics, hidden, err)
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

// What can't be read for good is told apart from what may be read at another attempt.
func TestClaimsThatCantBeRead(t *testing.T) {
	for _, code := range []error{kerr.TopicAuthorizationFailed, kerr.KafkaStorageError} {
		s := newStates(t)
		s.create("a")
		s.create("b")
		s.write("a", 0, keyFrontier, frontierOf("t"), 1)
		s.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
			s.KeepControl()
			r := req.(*kmsg.ListOffsetsRequest)
			if len(r.Topics) == 0 || r.Topics[0].Topic != plain.StateTopic("b") {
				return nil, nil, false
			}
			resp := r.ResponseKind().(*kmsg.ListOffsetsResponse)
			for _, p := range r.Topics[0].Partitions {
				answer := kmsg.NewListOffsetsResponseTopicPartition()
				answer.Partition, answer.ErrorCode = p.Partition, code.(*kerr.Error).Code
				topic := kmsg.NewListOffsetsResponseTopic()
				topic.Topic, topic.Partitions = r.Topics[0].Topic, append(topic.Partitions, answer)
				resp.Topics = append(resp.Topics, topic)
			}
			return resp, nil, true
		})
		topics, hidden, err := s.claims("c")
		forGood := errors.Is(code, kerr.TopicAuthorizationFailed)
		if len(topics["a"]) != 1 || len(hidden) > 0 != forGood || err == nil != forGood {
			t.Errorf("%v: %v, %v, %v", code, topics, hidden, err)
		}
		if !forGood && !errors.Is(err, code) {
			t.Errorf("%v is not %v", err, code)
		}
	}
}
