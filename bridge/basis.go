package bridge

import (
	"strconv"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

// basis is what a hold takes from the frontier: what was promised, what is left out, where records go. It answers the
// pipeline's questions (pipeline.Host).
//
// The worker's goroutine changes it between two passes. The goroutines of shards read it, and none runs meanwhile.
type basis struct {
	h           *hold
	frontier    *offsets.Frontier  // adopted last
	promised    envelope.Timestamp // frontier.Resolved, parsed; in a bundle, that of the segment before
	filter      envelope.Filter    // with the frontier's start and our end
	epochHeader []kgo.RecordHeader // of every record, or none
	topics      openTopics         // guards itself
}

var _ pipeline.Host = (*basis)(nil)

// adopt takes the frontier of s over, if it fits our settings.
func (b *basis) adopt(s *offsets.State) error {
	f := s.Frontier
	if f == nil || f == b.frontier {
		return nil
	}
	opts := b.h.opts
	if err := opts.Compatible(s); err != nil {
		return err
	}
	promised, err := parseTime(f.Resolved)
	if err != nil {
		return err
	}
	start, err := parseTime(f.Start)
	if err != nil {
		return err
	}
	b.promised, b.filter = promised, opts.Filter
	b.filter.From, b.filter.To = start, opts.End
	b.epochHeader = nil
	if opts.EpochHeader {
		b.epochHeader = []kgo.RecordHeader{{Key: "epoch", Value: strconv.AppendInt(nil, f.Epoch, 10)}}
	}
	b.frontier = f
	b.topics.renew(b.h.cursor, f)
	return nil
}

// describeRows returns the pass over a listing, for the pipeline.
func (b *basis) describeRows() *pipeline.Pass { return b.describe(source.Manifest{}, nil) }

// describe returns the pass over a segment, for the pipeline.
func (b *basis) describe(m source.Manifest, backlog *pipeline.Backlog) *pipeline.Pass {
	return &pipeline.Pass{
		Lease: b.h.p, Manifest: m, Filter: b.filter, Promised: b.promised, Limit: b.h.limit, Headers: b.epochHeader,
		Backlog: backlog, Host: b,
	}
}
