// Package suspects finds, in the topics of records, the keys whose blobs an account may not have: deletions that the
// feed has lost. A key is no more than a suspect. What counts is the account's answer, which is for others to ask.
package suspects

import (
	"cmp"
	"context"
	"slices"
	"sync"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/crash"
	"blobfeed/offsets"
)

// defaultBytes is for Options.Bytes.
const defaultBytes = 16 << 20

// Options say how to look.
type Options struct {
	Client  []kgo.Opt
	Scan    *offsets.Scan    // of which rows were written
	Filter  *envelope.Filter // blobs that it leaves out are no suspects: no event would delete them, either
	Encoder func(ctx context.Context, topic string) (*envelope.Encoder, error)
	Bytes   int             // that the hashes of keys may take (I9)
	Within  *offsets.Within // the suspects up to there are dealt with; nil: none are
	// Turn returns when it is this reader's turn: the hashes of one are in memory at a time (I9).
	Turn func(context.Context) (leave func(), err error)
}

// Suspect is a key whose blob the account may not have: its last record is no deletion, and is before all rows of the
// scan.
type Suspect struct{ Container, Name string }

// Batch is suspects of one partition.
type Batch struct {
	offsets.Lane
	Suspects []Suspect
	Within   *offsets.Within // all suspects up to there are in this batch or former ones; nil: nobody knows
	Last     bool            // no suspect of the partition follows
	Skipped  int64           // with Last: keys of the partition that are no paths
}

// Reader reads partitions, one after another.
type Reader struct {
	Scan    string     // the ID
	Batches chan Batch // closed when all partitions are read, or one could not be
	Current Batch      // of the caller: what is left of the last one

	end  context.CancelFunc
	done chan struct{} // closed when the reader has ended
	mu   sync.Mutex
	err  error
}

// Read starts to read partitions, in their order. The caller stops the reader, or life ends.
func Read(life context.Context, o Options, partitions []offsets.Lane) *Reader {
	ctx, cancel := context.WithCancel(life)
	r := &Reader{Scan: o.Scan.ID, end: cancel, Batches: make(chan Batch), done: make(chan struct{})}
	crash.Go(ctx, "sweep", func() {
		defer close(r.done)
		defer close(r.Batches)
		for _, lane := range partitions {
			read := func() error { return o.read(ctx, lane, r.Batches) }
			if err := crash.Try(ctx, "sweep", read)(); err != nil { // known before the channel is closed
				r.mu.Lock()
				r.err = err
				r.mu.Unlock()
				return
			}
		}
	})
	return r
}

// Err returns why the reader has failed, nil if it has read all.
func (r *Reader) Err() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.err
}

// Stop ends the reader, and returns when it has ended.
func (r *Reader) Stop() {
	r.end()
	<-r.done
}

// read sends the suspects of one partition, and a last batch, which may be empty. It waits until its suspects are dealt
// with.
func (o *Options) read(ctx context.Context, at offsets.Lane, out chan<- Batch) error {
	leave, err := o.Turn(ctx)
	if err != nil {
		return err
	}
	defer leave()
	encoder, err := o.Encoder(ctx, at.Topic)
	if err != nil {
		return err
	}
	send := func(b Batch) error {
		b.Lane = at
		select {
		case out <- b:
			return nil
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	p := &partition{client: o.Client, topic: at.Topic, number: at.Partition, encoder: encoder, scan: o.Scan.ID,
		limit: cmp.Or(o.Bytes, defaultBytes)}
	if o.Within != nil && o.Within.Lane == at {
		p.passed = o.Within.To
	}
	err = p.find(ctx, func(keys []Suspect, to int64) error {
		keys = slices.DeleteFunc(keys, func(k Suspect) bool {
			return !o.Scan.Sweeps(k.Container, k.Name) || !o.Filter.Path(k.Container, k.Name)
		})
		b := Batch{Suspects: keys}
		if to > 0 {
			b.Within = &offsets.Within{Lane: at, To: to}
		}
		return send(b)
	})
	if err != nil {
		return err
	}
	return send(Batch{Last: true, Skipped: p.skipped})
}
