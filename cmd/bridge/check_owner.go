package main

import (
	"context"
	"maps"
	"slices"
	"strings"

	"blobfeed/bridge"
	"blobfeed/internal/check"
	"blobfeed/internal/config"
	"blobfeed/internal/setup"
	"blobfeed/offsets"
)

// checkOwner looks for another bridge that writes to the same topics: run refuses to be the second.
func checkOwner(
	ctx context.Context, c *config.Config, o *bridge.Options, f *offsets.Frontier, found *check.Findings,
) error {
	r, done, err := setup.State(c)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, setup.StateTimeout, setup.ErrSilent)
	defer cancel()
	claims, hidden, err := offsets.Claims(ctx, r.Admin, c.Name, r.Client...)
	if err != nil {
		hidden = append(hidden, err)
	}
	for _, err := range hidden {
		found.Add("owner", check.Warning, err.Error(),
			"permit Describe and Read on the state of the other bridge, so that run notices when both write to one topic")
	}
	var topics []string
	if f != nil {
		topics = slices.Sorted(maps.Keys(f.Topics))
	}
	if topic, ok := o.Topics.Constant(); ok && len(topics) == 0 {
		topics = []string{topic}
	}
	if err := o.Sole(topics, claims); err != nil {
		found.Add("owner", check.Failed, err.Error(), "")
		return nil
	}
	detail := "no other bridge writes to " + strings.Join(topics, ", ")
	switch {
	case o.Shared:
		detail = "bridges of other accounts may write to the same topics (BRIDGE_TOPIC_SHARED)"
	case len(topics) != 1:
		detail = "no other bridge writes to the topics of this one"
	}
	found.Add("owner", check.OK, detail, "")
	return nil
}
