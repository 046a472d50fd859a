package topics

import (
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
