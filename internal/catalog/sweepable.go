package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"

	"blobfeed/envelope"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// UnsweepableError is why topics cannot be swept.
type UnsweepableError struct{ error }

// Unsweepable returns an UnsweepableError with a text.
func Unsweepable(why string) *UnsweepableError { return &UnsweepableError{errors.New(why)} }

// Sweepable returns an UnsweepableError if the topics cannot be swept.
func (c *Catalog) Sweepable(ctx context.Context, f *offsets.Frontier, filter *envelope.Filter) error {
	if c.Shared {
		return Unsweepable("other accounts write to these topics, too (BRIDGE_TOPIC_SHARED): their keys " +
			"cannot be told apart")
	}
	if !filter.Deletions() {
		return Unsweepable("the filter leaves out BlobDeleted (BRIDGE_EVENT_TYPES), and a sweep writes " +
			"deletions")
	}
	names := slices.Sorted(maps.Keys(f.Topics))
	for _, name := range names {
		encoder, err := c.Encoder(ctx, name)
		if err != nil {
			return err
		}
		if !encoder.TellsDeletions() {
			return Unsweepable("records of BRIDGE_ENVELOPE=key_only do not say which keys are deleted: " +
				"set BRIDGE_DELETES=tombstone, in a new topic")
		}
	}
	err := c.Admin.KeepsKeys(ctx, names...)
	if errors.Is(err, topics.ErrForgets) {
		return &UnsweepableError{err}
	}
	return err
}
