package pipeline

import (
	"context"
	"log/slog"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/partitioner"
	"blobfeed/source"
)

// Settings are what all passes of an instance have in common.
type Settings struct {
	Feed       *source.Feed
	Events     envelope.EventsMode
	Topics     *envelope.Topics
	Partition  partitioner.Func
	DeadLetter string // topic of what cannot become a record; "": the shard stays at it
	SkipGaps   bool   // continue behind a chunk that retention has removed
	Once       bool   // nothing is left for a later pass

	MemoryBytes   int     // of blocks that are not given back, and 3/4 of it for what is read ahead; 0: no bound
	Memory        *Budget // of as many bytes, if several instances share them; nil: not shared
	BundleBytes   int64   // size of the chunks of a bundle
	BundleReaders int     // segments that a Lookahead lists ahead, and has in each other stage

	Log *slog.Logger
}

// Pipeline is the pipeline of an instance. It is safe for concurrent use.
type Pipeline struct {
	set    Settings // immutable
	memory *memory  // guards itself
	pool   pool     // guards itself

	unknown unknown // guards itself
}

// New returns a pipeline that does nothing yet. Close ends its share of the memory.
func New(s Settings) *Pipeline {
	if s.Memory == nil {
		s.Memory = NewBudget(s.MemoryBytes)
	}
	return &Pipeline{set: s, memory: newMemory(s.Memory)}
}

// Close leaves the memory to the pipelines that share it.
func (p *Pipeline) Close() { p.memory.leave(p.memory.share) }

// Pass describes the work of one lease on one segment. It does not change while the goroutines of a Run use it.
type Pass struct {
	Lease    int32
	Manifest source.Manifest
	Filter   envelope.Filter
	Promised envelope.Timestamp // a record at or below it is late
	Limit    int32              // bytes of a batch that every topic takes
	Headers  []kgo.RecordHeader // of every record, beside its own
	Backlog  *Backlog
	Host     Host
}

// Host is the holder of the lease that a pass is for. The goroutines of all shards call it.
type Host interface {
	// Topic returns where the records of a topic go.
	Topic(ctx context.Context, name string) (*Topic, error)
	// Prepare creates what is missing of the topics that a block needs, all at once. Topic reports what goes wrong.
	Prepare(ctx context.Context, names []string)
	// Known reports whether Topic has nothing to create for a name.
	Known(name string) bool
	// Retry calls f until it succeeds, ctx ends, or the error is one that another attempt cannot help.
	Retry(ctx context.Context, f func(context.Context) error) error
	// TooLarge returns err, of a record that does not fit into Pass.Limit, or another error if that limit has changed.
	TooLarge(ctx context.Context, err error) error
	// Lost returns the error of a chunk that retention has removed before it was read.
	Lost(ctx context.Context, seg source.Segment, chunk string) error
}
