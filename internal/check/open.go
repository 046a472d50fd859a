package check

import (
	"context"

	"blobfeed/internal/status"
)

// overdue warns of a segment that stays open although there are later ones, as the state has it. A bridge that has
// stopped does not know that Azure has finalized the segment since.
func (ck *checker) overdue(ctx context.Context) {
	if ck.frontier == nil {
		return
	}
	open := status.Of(ck.bridge.Name, ck.stored, status.Group{}, ck.now).Open()
	if open.Cause == "" {
		return
	}
	if m, err := ck.bridge.Feed.Source.Manifest(ctx, ck.frontier.Current); err == nil && !m.Finalized {
		ck.Add("open", Warning, open.Cause, open.Remedy)
	}
}
