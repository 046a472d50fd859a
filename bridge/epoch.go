package bridge

import (
	"context"
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/internal/catalog"
	"blobfeed/internal/history"
	"blobfeed/offsets"
	"blobfeed/source"
)

// epochView is what a tenure takes from the frontier: what was promised, what is left out, where records go. It answers
// the pipeline's questions (pipeline.Host), those about topics by its Topics.
//
// The worker's goroutine changes it between two passes. The goroutines of shards read it, and none runs meanwhile.
type epochView struct {
	t           *tenure
	frontier    *offsets.Frontier  // adopted last
	promised    envelope.Timestamp // frontier.Resolved, parsed
	filter      envelope.Filter    // with the frontier's start and our end
	epochHeader []kgo.RecordHeader // of every record, or none

	*catalog.Topics // guards itself; nil before the acquisition
}

var _ pipeline.Host = (*epochView)(nil)

// adopt takes the frontier of s over, if it fits our settings.
func (e *epochView) adopt(s *offsets.State) error {
	f := s.Frontier
	if f == nil || f == e.frontier {
		return nil
	}
	opts := e.t.opts
	if err := opts.Stored().Fit(s); err != nil {
		return err
	}
	promised, err := history.ParseStored(f.Resolved)
	if err != nil {
		return err
	}
	start, err := history.ParseStored(f.Start)
	if err != nil {
		return err
	}
	e.promised, e.filter = promised, opts.Feed.Filter
	e.filter.From, e.filter.To = start, opts.Feed.End
	e.epochHeader = nil
	if opts.Records.EpochHeader {
		e.epochHeader = []kgo.RecordHeader{{Key: "epoch", Value: strconv.AppendInt(nil, f.Epoch, 10)}}
	}
	e.frontier = f
	e.Topics.Renew(e.t.cursor, f)
	return nil
}

// describeRows returns the pass over a listing, for the pipeline.
func (e *epochView) describeRows() *pipeline.Pass { return e.describe(source.Manifest{}, nil) }

// describe returns the pass over a segment, for the pipeline.
func (e *epochView) describe(m source.Manifest, backlog *pipeline.Backlog) *pipeline.Pass {
	return &pipeline.Pass{
		Lease: e.t.p, Manifest: m, Filter: e.filter, Promised: e.promised, Limit: e.Topics.Limit(),
		Headers: e.epochHeader, Backlog: backlog, Host: e,
	}
}

// Retry is retry, for the goroutines of shards.
func (e *epochView) Retry(ctx context.Context, f func(context.Context) error) error {
	return e.t.retry(ctx, f)
}

// Lost returns the loss of a chunk that was to be read.
func (e *epochView) Lost(ctx context.Context, seg source.Segment, chunk string) error {
	oldest, _, err := e.t.instance.history.Next(ctx, source.Segment{})
	if err != nil {
		return err
	}
	return &history.GapError{At: seg, Chunk: chunk, Oldest: oldest}
}
