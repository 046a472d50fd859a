package main

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/change"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
)

const scanHelp = `
Asks the running bridge to list the account and to write a row for each blob, while it delivers the feed: after a filter
was widened, a topic was lost, or if in doubt. Delivery pauses for some seconds at a time.
With --sweep, the bridge also deletes the keys that the topics have and the account has not. It repairs the topics after
history was lost.
`

func scanVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	usage := "[--container NAME] [--prefix PREFIX] [--sweep] [--wait] [--cancel] [--output text|json]"
	fs := flags("scan", usage, stdout, func(w io.Writer) { fmt.Fprint(w, scanHelp) })
	var s change.Scan
	fs.StringVar(&s.Container, "container", "", "list only this container")
	fs.StringVar(&s.Prefix, "prefix", "", "list only blobs whose names begin with this")
	fs.BoolVar(&s.Sweep, "sweep", false, "also delete keys whose blobs are gone")
	wait := fs.Bool("wait", false, "wait for the end of the scan, show its progress, and fail unless it is complete")
	fs.BoolVar(&s.Cancel, "cancel", false, "cancel the scan that is under way; the rows that it has written stay")
	asJSON, err := parseOutput(fs, args, "one document")
	if err != nil {
		return err
	}
	if s.Cancel && (s.Sweep || *wait || s.Container != "" || s.Prefix != "") {
		return &usageError{fmt.Errorf("--cancel stands alone")}
	}
	if err := s.CheckContainer(); err != nil {
		return &usageError{err}
	}
	c, r, done, err := openState()
	if err != nil {
		return err
	}
	defer done()
	if c.SourceURL != "" && s.Container != "" {
		from, err := setup.OpenSource(c, setup.Observe{})
		if err != nil {
			return &settingsError{err}
		}
		s.Account = from.Inventory
	}
	s.Shared, s.Tombstones = c.TopicShared, c.Deletes == envelope.DeletesTombstone.String()
	filter := envelope.Filter{EventTypes: c.EventTypes.Included(), ExcludeEventTypes: c.EventTypes.Excluded()}
	s.Filtered = !filter.Deletions()
	asking, cancel := context.WithTimeoutCause(ctx, changeTimeout, setup.ErrSilent)
	defer cancel()
	if err := s.Request(asking, r); err != nil {
		return err
	}
	switch {
	case *wait && asJSON:
		return awaitScan(ctx, r, s.ID, stderr, func(scan *status.Scan, over bool) error {
			if !over {
				return nil
			}
			return json.NewEncoder(stdout).Encode(scan)
		})
	case asJSON:
		return json.NewEncoder(stdout).Encode(s)
	}
	if err := s.Text(stdout); err != nil || !*wait {
		return err
	}
	return awaitScan(ctx, r, s.ID, stderr, func(scan *status.Scan, _ bool) error {
		_, err := fmt.Fprintln(stdout, plain.Line(scan.Text(r.Now())))
		return err
	})
}

// scanWait is how often a scan that is waited for is looked at.
var scanWait = 5 * time.Second // tests have a shorter one

// awaitScan returns when a scan is over, and its error unless it is complete. Show gets what is known of the scan, each
// time it is looked at.
func awaitScan(
	ctx context.Context, r *status.Reader, id string, stderr io.Writer, show func(*status.Scan, bool) error,
) error {
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	for {
		asking, cancel := context.WithTimeoutCause(ctx, setup.StateTimeout, setup.ErrSilent)
		s, err := r.Status(asking)
		cancel()
		if err == nil {
			scan := s.ScanOf(id)
			if scan == nil {
				return fmt.Errorf("scan %s is not in the state any more: it was cancelled before it began, "+
					"a reset has voided it, or many others followed", id)
			}
			over, outcome := scan.Over()
			if err := show(scan, over); err != nil || over {
				return cmp.Or(err, outcome)
			}
		} else if ctx.Err() == nil {
			fmt.Fprintln(stderr, "bridge:", plain.Line(err.Error())) // brokers may come back
		}
		if pause.For(ctx, scanWait) != nil {
			return fmt.Errorf("the wait for scan %s was interrupted: the scan continues; bridge status shows it", id)
		}
	}
}
