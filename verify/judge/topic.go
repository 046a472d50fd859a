package judge

import (
	"context"
	"errors"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/pause"
	"blobfeed/offsets"
	"blobfeed/verify"
)

const (
	// endPatience bounds the wait for open transactions, which hide committed records. It is longer than most
	// BRIDGE_TXN_TIMEOUTs.
	endPatience = time.Minute
	endPoll     = 100 * time.Millisecond
)

// cluster has the topics. Tests implement it with records that they have changed after the bridge wrote them.
type cluster interface {
	// open returns a topic up to its end, or errNoTopic.
	open(ctx context.Context, name string) (*topic, error)
	// state returns what is committed to a state topic, or nil if there is none.
	state(ctx context.Context, topic string) (*offsets.State, error)
	// claims returns what the states of bridges with other names say, and why some can't be read.
	claims(ctx context.Context, own string) (claims []offsets.Claim, hidden []error, err error)
}

// errNoTopic says that a topic does not exist.
var errNoTopic = errors.New("it does not exist: check BRIDGE_TOPIC, --topic and BRIDGE_KAFKA_BROKERS; if the topic " +
	"was deleted, bridge check says how to continue")

// records are those of a topic.
type records interface {
	// ends returns the offsets after the last records, committed or not, and committed those after the last records
	// that a read_committed consumer gets.
	ends(ctx context.Context) (map[int32]int64, error)
	committed(ctx context.Context) (map[int32]int64, error)
	// read shows the records between offsets, by partition, until show returns false for one of the partition.
	read(ctx context.Context, from, to map[int32]int64, show func(*kgo.Record) (more bool)) error
	close()
}

// topic is a topic up to the end that it had when it was opened.
type topic struct {
	name      string
	records   records
	from, to  map[int32]int64
	resumed   bool // from is where a former round ended, not where the topic begins
	compacted bool
	markers   map[int32]envelope.Timestamp // the last that was read, by partition
	seeks     []string                     // that the markers of partition 0 name, as far as it was read

	avro    *verify.Avro
	portion *portion      // of the judged bridge; nil: no other bridge writes to the topic
	beside  *topic        // of its markers, if they have a topic of their own
	aside   *verify.Aside // the markers in beside
}

func (t *topic) close() {
	t.records.close()
	if t.beside != nil {
		t.beside.close()
	}
}

// deleted reports whether retention has deleted the start of a partition.
func (t *topic) deleted(p int32) bool { return t.from[p] > 0 && !t.resumed }

func (t *topic) empty() bool {
	for p, end := range t.to {
		if t.from[p] < end {
			return false
		}
	}
	return true
}

// settled polls until ask returns "", which is what it waits for.
func settled(ctx context.Context, ask func(context.Context) (waiting string, err error)) error {
	ctx, cancel := context.WithTimeout(ctx, endPatience)
	defer cancel()
	for {
		waiting, err := ask(ctx)
		if err != nil || waiting == "" {
			return err
		}
		if pause.For(ctx, endPoll) != nil {
			return errors.New(waiting)
		}
	}
}
