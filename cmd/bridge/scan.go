package main

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/change"
	"blobfeed/internal/check"
	"blobfeed/internal/config"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/offsets"
)

const scanHelp = `
Asks the running bridge to list the account and to write a row for each blob, while it delivers the feed: after a filter
was widened, a topic was lost, or if in doubt. Delivery pauses for some seconds at a time.
With --sweep, the bridge also deletes the keys that the topics have and the account has not. It repairs the topics after
history was lost. It stops before it deletes more keys than --max-deletions. With --plan, scan counts what a sweep would
delete, and asks the bridge for nothing: it reads the topics and lists the account by itself.
`

// defaultDeletions is a number that lost history seldom has, and a wrong account or a wrong topic soon.
const defaultDeletions = 100_000

func scanVerb(ctx context.Context, env config.Env, args []string, stdout, stderr io.Writer) error {
	usage := "[--container NAME] [--prefix PREFIX] [--sweep [--plan] [--max-deletions N]] [--wait] [--cancel] " +
		"[--output text|json]"
	fs := flags(env, "scan", usage, stdout, func(w io.Writer) { fmt.Fprint(w, scanHelp) })
	var s change.Scan
	fs.StringVar(&s.Container, "container", "", "list only this container")
	fs.StringVar(&s.Prefix, "prefix", "", "list only blobs whose names begin with this")
	fs.BoolVar(&s.Sweep, "sweep", false, "also delete keys whose blobs are gone")
	fs.Int64Var(&s.MaxDeletions, "max-deletions", defaultDeletions,
		"with --sweep: stop before more deletions than this; 0: no limit")
	plan := fs.Bool("plan", false, "with --sweep: count deletions and requests, and do nothing")
	wait := fs.Bool("wait", false, "wait for the end of the scan, show its progress, and fail unless it is complete")
	fs.BoolVar(&s.Cancel, "cancel", false, "cancel the scan that is under way; the rows that it has written stay")
	asJSON, err := parseOutput(fs, args, "one document")
	if err != nil {
		return err
	}
	switch {
	case s.Cancel && (s.Sweep || *plan || *wait || s.Container != "" || s.Prefix != ""):
		return &usageError{errors.New("--cancel stands alone")}
	case !s.Sweep && (*plan || s.MaxDeletions != defaultDeletions):
		return &usageError{errors.New("--plan and --max-deletions are for --sweep")}
	case *plan && *wait:
		return &usageError{errors.New("--plan asks for no scan: leave out --wait")}
	case s.MaxDeletions < 0:
		return &usageError{errors.New("--max-deletions: want a number from 0 on")}
	case !s.Sweep:
		s.MaxDeletions = 0
	}
	if err := s.CheckContainer(); err != nil {
		return &usageError{err}
	}
	c, r, done, err := openState(env)
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
	asking, cancel := context.WithTimeoutCause(ctx, changeTimeout, status.ErrSilent)
	defer cancel()
	if *plan {
		state, err := s.Check(asking, r)
		if err != nil {
			return err
		}
		return planSweep(ctx, env, &s, state.Frontier, stdout, asJSON)
	}
	if err := s.Request(asking, r); err != nil {
		return err
	}
	switch {
	case *wait && asJSON:
		return awaitScan(ctx, r, &s, stderr, func(scan *status.Scan, over bool) error {
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
	return awaitScan(ctx, r, &s, stderr, func(scan *status.Scan, _ bool) error {
		_, err := fmt.Fprintln(stdout, plain.Line(scan.Text(time.Now())))
		return err
	})
}

// planSweep prints what a sweep would do.
func planSweep(
	ctx context.Context, env config.Env, s *change.Scan, f *offsets.Frontier, stdout io.Writer, asJSON bool,
) error {
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	c, err := load(env.Load(true))
	if err != nil {
		return err
	}
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		return &settingsError{err}
	}
	p, err := bridge.PlanSweep(ctx, &o, &offsets.Scan{Container: s.Container, Prefix: s.Prefix}, f.Topics)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(p)
	}
	about := ""
	if p.Sample > 1 {
		about = fmt.Sprintf(", estimated from 1 of %d keys", p.Sample)
	}
	_, err = fmt.Fprintf(stdout, "a sweep would write at most %s%s: it compares %s with %s\n"+
		"it takes %s for rows and %s, about $%.2f at the list price of a hot, locally redundant account\n"+
		"nothing was written\n",
		plain.Count(p.Deletions, "deletion"), about, plain.Count(p.Keys, "key"), plain.Count(p.Blobs, "blob"),
		plain.Count(p.Requests, "list request"), plain.Count(p.Heads, "HEAD request"), check.Price(p.Requests, p.Heads))
	return err
}

// scanWait is how often a scan that is waited for is looked at.
var scanWait = 5 * time.Second // tests have a shorter one

// awaitScan returns when a scan is over, and its error unless it is complete. Show gets what is known of the scan, each
// time it is looked at.
func awaitScan(
	ctx context.Context, r *status.Reader, asked *change.Scan, stderr io.Writer, show func(*status.Scan, bool) error,
) error {
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	id, shows := asked.ID, false
	for {
		asking, cancel := context.WithTimeoutCause(ctx, setup.StateTimeout, status.ErrSilent)
		var s *status.Status
		var err error
		if !shows {
			shows, err = asked.Shows(asking, r)
		}
		if shows {
			s, err = r.Status(asking)
		}
		cancel()
		switch {
		case err != nil && ctx.Err() == nil:
			fmt.Fprintln(stderr, "bridge:", plain.Line(err.Error())) // brokers may come back
		case s != nil:
			scan := s.ScanOf(id)
			if scan == nil {
				return fmt.Errorf("scan %s is not in the state any more: it was cancelled before it began, "+
					"a reset has voided it, or many others followed", id)
			}
			over, outcome := scan.Over()
			if err := show(scan, over); err != nil || over {
				return cmp.Or(err, outcome)
			}
		}
		if pause.For(ctx, scanWait) != nil {
			return fmt.Errorf("the wait for scan %s was interrupted: the scan continues; bridge status shows it", id)
		}
	}
}
