package catalog

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/offsets"
)

// Another instance has found a topic, and the brokers have ended its transaction in the topic, and not yet in the
// partition of its cursor. The topic is no foreign one: what is known of it comes with the cursor.
func TestTopicOfAnotherInstanceIsNotForeign(t *testing.T) {
	t.Parallel()
	const name, lease = "container-0000", 1
	brokers := fakebroker.New(t)
	names, err := envelope.NewTopics("{container}", "account")
	must(t, err)
	client := []kgo.Opt{kgo.SeedBrokers(brokers.ListenAddrs()...)}
	c := New(Options{Bridge: "test", Names: names, Now: time.Now, Client: client, Claims: NewClaims(),
		Log:    slog.New(slog.DiscardHandler),
		Oldest: func(context.Context) (at time.Time, ok bool, err error) { return at, false, nil },
	}, fakebroker.Client(t, brokers))
	rs, err := fakebroker.Admin(t, brokers).CreateTopics(t.Context(), 2, 1, nil, name, c.state())
	must(t, err, rs.Error())
	begin := func(id string, records ...*kgo.Record) *kgo.Client {
		cl := fakebroker.Client(t, brokers, kgo.TransactionalID(id), kgo.RecordPartitioner(kgo.ManualPartitioner()))
		must(t, cl.BeginTransaction(), cl.ProduceSync(t.Context(), records...).FirstErr())
		return cl
	}
	slow := begin("slow", &kgo.Record{Topic: c.state(), Partition: lease, Key: []byte("?")})
	cursor, err := json.Marshal(&offsets.Cursor{Version: 1, Pins: map[string]offsets.Pin{name: {Partitions: 1}}})
	must(t, err)
	other := begin("other", &kgo.Record{Topic: name, Key: []byte("key")},
		&kgo.Record{Topic: c.state(), Partition: lease, Key: []byte("cursor"), Value: cursor})
	must(t, other.EndTransaction(t.Context(), kgo.TryCommit))

	view := offsets.NewView(c.state(), 2)
	go func() { _ = view.Run(t.Context(), client...) }()
	topics, err := c.ForLease(t.Context(), view)
	must(t, err)
	topics.Renew(&offsets.Cursor{}, &offsets.Frontier{})
	soon, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if _, err := topics.openNewTopic(soon, name); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("before the cursor can be read: %v", err)
	}
	must(t, slow.EndTransaction(t.Context(), kgo.TryCommit))
	if _, err := topics.openNewTopic(t.Context(), name); err != nil {
		t.Error(err)
	}
	if pin, pinned, err := topics.pinOfOthers(name); pin.Partitions != 1 || !pinned || err != nil {
		t.Errorf("%+v, %t, %v", pin, pinned, err)
	}
}

func must(t *testing.T, errs ...error) {
	t.Helper()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
}
