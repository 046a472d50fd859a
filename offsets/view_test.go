package offsets

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/fakebroker"
)

// A leader ends the transaction that another one began, and then the partition moves again: nothing is lost by that,
// though the epoch of the transaction's records ends below the view's position.
func TestViewFollowsLeaders(t *testing.T) {
	c := fakebroker.New(t, kfake.NumBrokers(2))
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	cfg := &Config{
		Topic: stateTopic, Name: "test", Transactional: true, TxnTimeout: 30 * time.Second, Now: time.Now,
		Client: []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.MetadataMinAge(50 * time.Millisecond),
			kgo.MetadataMaxAge(100 * time.Millisecond)},
	}
	cl, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	createState(t, ctx, kadm.NewClient(cl))
	v := viewOf(t, cfg)
	l := acquire(t, ctx, cfg, v, "a")
	// Asked where an epoch ends, a leader of Kafka knows where its own began from the moment on that it leads.
	// kfake knows that only with the first record of its epoch, and answers until then as a broker that has
	// lost its history: the view rightly takes that for lost records. So here that question has to wait for the
	// record.
	var moved atomic.Bool
	c.ControlKey(int16(kmsg.OffsetForLeaderEpoch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		return nil, errors.New("ask again"), moved.Load()
	})
	for range 3 {
		r, err := l.document(keyCursor, &Cursor{Version: Version})
		if err != nil {
			t.Fatal(err)
		}
		if err := openTx(l).Mark(ctx, []*kgo.Record{r}); err != nil {
			t.Fatal(err)
		}
		if err := openTx(l).Flush(ctx); err != nil {
			t.Fatal(err)
		}
		moved.Store(true)
		if err := c.MoveTopicPartition(stateTopic, 1, 1-c.LeaderFor(stateTopic, 1)); err != nil {
			t.Fatal(err)
		}
		if err := l.end(ctx, "test"); err != nil { // the new leader writes the end
			t.Fatal(err)
		}
		moved.Store(false)
		if _, err := v.Await(ctx, func(s *State) bool { return s.next[1] > r.Offset }); err != nil {
			t.Fatal(err)
		}
	}
}

// An error that all partitions have is one error.
func TestViewFailsOnce(t *testing.T) {
	c := fakebroker.New(t, kfake.SeedTopics(4, stateTopic))
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.ListOffsetsResponse)
		for _, asked := range req.(*kmsg.ListOffsetsRequest).Topics {
			topic := kmsg.ListOffsetsResponseTopic{Topic: asked.Topic}
			for _, p := range asked.Partitions {
				denied := kerr.TopicAuthorizationFailed.Code
				topic.Partitions = append(topic.Partitions,
					kmsg.ListOffsetsResponseTopicPartition{Partition: p.Partition, ErrorCode: denied})
			}
			resp.Topics = append(resp.Topics, topic)
		}
		return resp, nil, true
	})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	err := NewView(stateTopic, 4).Run(ctx, kgo.SeedBrokers(c.ListenAddrs()...))
	if !errors.Is(err, kerr.TopicAuthorizationFailed) || strings.Count(err.Error(), "reading partition") != 1 {
		t.Errorf("err = %v", err)
	}
}

// The topic is deleted and made anew behind our back: the view ends, and does not take the new records for old ones.
func TestViewOfATopicMadeAnew(t *testing.T) {
	cfg, ctx := cluster(t)
	cfg.Client = append(cfg.Client, kgo.MetadataMaxAge(100*time.Millisecond))
	v := NewView(stateTopic, 4)
	ended := make(chan error, 1)
	go func() { ended <- v.Run(ctx, cfg.Client...) }()
	for range 3 {
		acquire(t, ctx, cfg, v, "a").Close(ctx)
	}
	cl, err := kgo.NewClient(cfg.Client...)
	if err != nil {
		t.Fatal(err)
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	if _, err := admin.DeleteTopic(ctx, stateTopic); err != nil {
		t.Fatal(err)
	}
	createState(t, ctx, admin)
	other := viewOf(t, cfg)
	for {
		acquire(t, ctx, cfg, other, "b").Close(ctx)
		select {
		case err := <-ended:
			if err == nil || !strings.Contains(err.Error(), "was deleted while the bridge ran") {
				t.Errorf("err = %v", err)
			}
			return
		case <-time.After(50 * time.Millisecond): // more records: those that the view would skip
		}
	}
}

// A connection that can't be made says nothing about the topic: the view reports it and reads on, whatever the reason.
// Brokers that move partitions make it connect anew, and a server of tokens may be down at that moment.
func TestViewOutlivesConnections(t *testing.T) {
	for what, refusal := range map[string]error{
		"token":       &net.OpError{Op: "token", Err: errors.New("the server of tokens is down")},
		"password":    kerr.SaslAuthenticationFailed,
		"mechanism":   kerr.UnsupportedSaslMechanism,
		"no password": kerr.IllegalSaslState,
		"certificate": &tls.CertificateVerificationError{Err: errors.New("expired")},
	} {
		t.Run(what, func(t *testing.T) {
			t.Parallel()
			cfg, ctx := cluster(t)
			var dials, refused atomic.Int64
			dialer := kgo.Dialer(func(ctx context.Context, network, addr string) (net.Conn, error) {
				if n := dials.Add(1); n > 1 && n < 5 { // the first one is for the metadata
					refused.Add(1)
					return nil, refusal
				}
				return new(net.Dialer).DialContext(ctx, network, addr)
			})
			of := *cfg
			of.Client = append(slices.Clone(cfg.Client), dialer)
			v := NewView(stateTopic, 4)
			var reported atomic.Bool
			v.Trouble = func(error) { reported.Store(true) }
			run(t, &of, v)
			acquire(t, ctx, cfg, v, "a")
			if refused.Load() == 0 || !reported.Load() {
				t.Errorf("refused %d times, reported %t", refused.Load(), reported.Load())
			}
		})
	}
}
