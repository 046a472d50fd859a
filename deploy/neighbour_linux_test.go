package deploy

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
)

// plant writes one batch of zstd to a topic, as a hostile producer can.
func plant(t *testing.T, cl *kgo.Client, topic string, compressed []byte) {
	t.Helper()
	batch := kmsg.RecordBatch{Magic: 2, Attributes: 4, ProducerID: -1, ProducerEpoch: -1, FirstSequence: -1,
		PartitionLeaderEpoch: -1, NumRecords: 1, Records: compressed}
	raw := batch.AppendTo(nil)
	binary.BigEndian.PutUint32(raw[8:], uint32(len(raw)-12))
	binary.BigEndian.PutUint32(raw[17:], crc32.Checksum(raw[21:], crc32.MakeTable(crc32.Castagnoli)))
	req := kmsg.NewPtrProduceRequest()
	req.Acks, req.TimeoutMillis = -1, 5000
	at := kmsg.NewProduceRequestTopic()
	at.Topic = topic
	part := kmsg.NewProduceRequestTopicPartition()
	part.Records = raw
	at.Partitions = append(at.Partitions, part)
	req.Topics = append(req.Topics, at)
	answer, err := cl.Request(t.Context(), req)
	if err == nil {
		err = kerr.ErrorForCode(answer.(*kmsg.ProduceResponse).Topics[0].Partitions[0].ErrorCode)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Somebody else on the brokers plants what looks like the states of bridges: 150 KB that unfold to a gigabyte, and bytes
// that do not unfold. A bridge that reads all states starts, names both topics, and stays within its memory.
func TestHostileStatesOfOthers(t *testing.T) {
	t.Parallel()
	const limit = 200 << 20
	c := fakebroker.New(t)
	cl := fakebroker.Client(t, c, kgo.MaxVersions(kversion.V2_8_0()))
	compressor, err := kgo.DefaultCompressor(kgo.ZstdCompression())
	if err != nil {
		t.Fatal(err)
	}
	var frame bytes.Buffer
	compressed, _ := compressor.Compress(&frame, make([]byte, 1<<20))
	bomb := bytes.Repeat(compressed, 1<<10) // frames follow each other
	for topic, planted := range map[string][]byte{"bomb": bomb, "torn": bomb[:len(compressed)/2]} {
		if _, err := fakebroker.Admin(t, c).CreateTopic(t.Context(), 1, 1, nil, plain.StateTopic(topic)); err != nil {
			t.Fatal(err)
		}
		plant(t, cl, plain.StateTopic(topic), planted)
	}
	for _, name := range []string{"first", "second"} { // the second finds records of the first, and asks whose they are
		dir := t.TempDir()
		spec := feedsim.Spec{Account: name, EventsPerSegment: 10}
		if err := feedsim.Write(t.Context(), feedsim.Dir(dir), spec, nil); err != nil {
			t.Fatal(err)
		}
		cmd := exec.CommandContext(t.Context(), program, "run", "--once")
		cmd.Env = append(os.Environ(), "BRIDGE_SOURCE_URL=file://"+dir, "BRIDGE_KAFKA_BROKERS="+c.ListenAddrs()[0],
			"BRIDGE_NAME="+name, "BRIDGE_TOPIC=all", "BRIDGE_TOPIC_SHARED=true", "BRIDGE_HTTP_ADDR=off",
			"BRIDGE_OFFSETS_LEASES=1")
		log, peak, err := measured(t, cmd)
		t.Logf("%s: %d bytes planted, a peak of %d MiB", name, len(bomb), peak>>20)
		if err != nil || peak > limit {
			t.Errorf("%s: %v, a peak of %d MiB:\n%.3000s", name, err, peak>>20, log)
		}
		for _, topic := range []string{"bomb", "torn"} {
			warning := fmt.Sprintf("reading the claims in %s", plain.StateTopic(topic))
			if name == "second" && !strings.Contains(log, warning) {
				t.Errorf("%s is not named:\n%.3000s", topic, log)
			}
		}
	}
}

// measured runs a program to its end.
func measured(t *testing.T, cmd *exec.Cmd) (log string, peak int64, err error) {
	t.Helper()
	var out strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }()
	for tick := time.NewTicker(10 * time.Millisecond); ; {
		if now, ok := peakOf(cmd); ok { // it never falls
			peak = now
		}
		select {
		case err := <-ended:
			return out.String(), peak, err
		case <-tick.C:
		}
	}
}
