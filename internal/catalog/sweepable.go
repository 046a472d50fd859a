package catalog

import (
	"context"
	"errors"
	"maps"
	"slices"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
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
		return Unsweepable("the filter leaves out BlobDeleted (BRIDGE_EVENT_TYPES), and a sweep writes deletions")
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

// LeavesKeys reports whether an initial scan needs a sweep: after a reset, the topics hold blobs that were deleted
// since, and no row says so. It rejects topics that can't be swept.
func (c *Catalog) LeavesKeys(
	ctx context.Context, counts map[string]int32, filter *envelope.Filter,
) (sweep bool, err error) {
	if !filter.Deletions() { // deleted blobs are to stay
		return false, nil
	}
	names, err := c.existing(ctx)
	if err != nil {
		return false, err
	}
	topic, err := c.firstUsed(ctx, names)
	if topic == "" || err != nil {
		return false, err
	}
	err = c.Sweepable(ctx, &offsets.Frontier{Topics: counts}, filter)
	if c.Constant() == nil {
		err = Unsweepable("a sweep needs to know the topics of the template")
	}
	if never, is := errors.AsType[*UnsweepableError](err); is {
		return false, plain.SettingsErrorf("topic %s holds records, and after an initial scan their deleted blobs "+
			"would stay, since a sweep can't find them: %v. Delete the topic, or set another BRIDGE_TOPIC",
			topic, never)
	}
	return true, err
}
