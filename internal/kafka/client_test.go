package kafka

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
)

// Every compression makes a client that gets a record through; the defaults that cost seconds on real brokers are not
// in force.
func TestOptions(t *testing.T) {
	c := fakebroker.New(t, kfake.SeedTopics(1, "t"))
	for _, compression := range []string{"none", "snappy", "lz4", "zstd", "gzip"} {
		opts, err := (&Client{Brokers: c.ListenAddrs(), ID: "x", Compression: compression, Buffered: 100}).Options()
		if err != nil {
			t.Fatal(err)
		}
		cl, err := kgo.NewClient(opts...)
		if err != nil {
			t.Fatal(err)
		}
		if err := cl.ProduceSync(t.Context(), &kgo.Record{Topic: "t", Value: []byte("v")}).FirstErr(); err != nil {
			t.Errorf("%s: %v", compression, err)
		}
		if most := cl.OptValue(kgo.MaxDecompressBatchBytes); most != 8<<20 {
			t.Errorf("%s: a batch may take %v bytes", compression, most)
		}
		if age := cl.OptValue(kgo.MetadataMinAge); age != 100*time.Millisecond {
			t.Errorf("MetadataMinAge is %v: three brokers would do 3 transactions a second", age)
		}
		cl.Close()
	}
	if _, err := (&Client{Compression: "brotli"}).Options(); err == nil {
		t.Error("brotli was accepted")
	}
}
