package judge

import (
	"errors"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
	"blobfeed/verify"
)

// What is written when a topic is opened belongs to it, also if its transaction is committed later.
func TestOpenTransactionIsRead(t *testing.T) {
	cluster := fakebroker.New(t)
	if _, err := fakebroker.Admin(t, cluster).CreateTopic(t.Context(), 1, 1, nil, "t"); err != nil {
		t.Fatal(err)
	}
	cl := fakebroker.Client(t, cluster, kgo.TransactionalID("writer"))
	produce := func() error {
		return cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Key: []byte("k")}).FirstErr()
	}
	if err := errors.Join(cl.BeginTransaction(), produce()); err != nil {
		t.Fatal(err)
	}
	open, err := brokers{kgo.SeedBrokers(cluster.ListenAddrs()...)}.open(t.Context(), "t")
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(produce(), cl.EndTransaction(t.Context(), kgo.TryCommit)); err != nil {
		t.Fatal(err)
	}
	records := 0
	if err := open.readAll(t.Context(), func(verify.Record) bool { records++; return true }); err != nil || records != 1 {
		t.Errorf("%d records, want the first one: %v", records, err)
	}
}
