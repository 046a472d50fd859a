package topics

import (
	"errors"
	"sync/atomic"
	"testing"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/fakebroker"
)

// I9: an answer has 2 MiB of packed records at most, whatever the client of the bridge permits.
func TestReadingAsksForLittle(t *testing.T) {
	c := fakebroker.New(t, kfake.SeedTopics(1, "t"))
	cl := fakebroker.Client(t, c)
	if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
		t.Fatal(err)
	}
	var most atomic.Int32 // the client may ask while it is closed
	c.ControlKey(int16(kmsg.Fetch), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		most.Store(max(most.Load(), req.(*kmsg.FetchRequest).MaxBytes))
		return nil, nil, false
	})
	reading := Reading{Client: []kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...), kgo.FetchMaxBytes(8 << 20)}, Topic: "t",
		From: map[int32]int64{}, To: map[int32]int64{0: 1}}
	records := 0
	if err := reading.Each(t.Context(), func(*kgo.Record) bool { records++; return true }); err != nil {
		t.Fatal(err)
	}
	if records != 1 || most.Load() != 2<<20 {
		t.Errorf("%d records with fetches of %d bytes", records, most.Load())
	}
}

// The first transaction of a topic may be open, or its end be under way, when another one behind it is committed.
func TestUsedBehindAnOpenTransaction(t *testing.T) {
	t.Parallel()
	c := fakebroker.New(t)
	const topic = "used"
	admin := &Admin{Client: fakebroker.Client(t, c)}
	_, err := fakebroker.Admin(t, c).CreateTopic(t.Context(), 1, 1, nil, topic)
	record := &kgo.Record{Topic: topic, Key: []byte("open")}
	open := fakebroker.Client(t, c, kgo.TransactionalID("slow"))
	if err := errors.Join(err, open.BeginTransaction(), open.ProduceSync(t.Context(), record).FirstErr()); err != nil {
		t.Fatal(err)
	}
	expect := func(want bool) {
		t.Helper()
		if used, err := admin.Used(t.Context(), topic, admin.Client.Opts()); used != want || err != nil {
			t.Errorf("used %t, %v", used, err)
		}
	}
	expect(false) // an instance may have created it, and ended before its first commit
	behind := &kgo.Record{Topic: topic, Key: []byte("committed")}
	if err := fakebroker.Client(t, c).ProduceSync(t.Context(), behind).FirstErr(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		if req.(*kmsg.ListOffsetsRequest).IsolationLevel == 1 {
			c.DropControl()
			go func() { ended <- open.EndTransaction(t.Context(), kgo.TryAbort) }()
		}
		return nil, nil, false
	})
	expect(true)
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
