package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"blobfeed/envelope"
	"blobfeed/internal/change"
	"blobfeed/internal/setup"
)

const scanHelp = `
Asks the running bridge to list the account and to write a row for each blob, while it delivers the feed: after a filter
was widened, a topic was lost, or if in doubt. Delivery pauses for some seconds at a time.
With --sweep, the bridge also deletes the keys that the topics have and the account has not. It repairs the topics after
history was lost.
`

func scanVerb(ctx context.Context, args []string, stdout, _ io.Writer) error {
	usage := "[--container NAME] [--prefix PREFIX] [--sweep] [--cancel] [--output text|json]"
	fs := flags("scan", usage, stdout, func(w io.Writer) { fmt.Fprint(w, scanHelp) })
	var s change.Scan
	fs.StringVar(&s.Container, "container", "", "list only this container")
	fs.StringVar(&s.Prefix, "prefix", "", "list only blobs whose names begin with this")
	fs.BoolVar(&s.Sweep, "sweep", false, "also delete keys whose blobs are gone")
	fs.BoolVar(&s.Cancel, "cancel", false, "cancel the scan that is under way; the rows that it has written stay")
	asJSON, err := parseOutput(fs, args, "one document")
	if err != nil {
		return err
	}
	if s.Cancel && (s.Sweep || s.Container != "" || s.Prefix != "") {
		return &usageError{fmt.Errorf("--cancel stands alone")}
	}
	c, r, done, err := openState()
	if err != nil {
		return err
	}
	defer done()
	s.Shared, s.Tombstones = c.TopicShared, c.Deletes == envelope.DeletesTombstone.String()
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, setup.ErrSilent)
	defer cancel()
	if err := s.Request(ctx, r); err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(s)
	}
	return s.Text(stdout)
}
