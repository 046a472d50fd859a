package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"text/tabwriter"

	"blobfeed/internal/config"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
)

// report is what status --all says of a bridge.
type report struct {
	Name           string `json:"name"`
	*status.Status        // nil if it cannot be read
	Error          string `json:"error,omitempty"`
}

// statusOfAll reports on every bridge of the settings file. With check, it is an error if one is degraded, or nobody
// runs it. A bridge whose state cannot be read always is one.
func statusOfAll(ctx context.Context, stdout io.Writer, asJSON, check bool) error {
	bridges, err := allBridges()
	if err != nil {
		return err
	}
	bad, unread := 0, 0
	out := json.NewEncoder(stdout)
	tw := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprint(tw, "bridge\tlast event\tverdict\n") // as old as
	}
	ask := func(c *config.Config) report {
		s, err := readStatus(ctx, c)
		if err != nil {
			return report{Name: c.Name, Error: err.Error()}
		}
		return report{Name: c.Name, Status: s}
	}
	err = forAll(bridges, ask, func(c *config.Config, r report) error {
		text, lag := "unknown: "+plain.Line(r.Error), "-"
		if r.Status == nil {
			unread++
		} else {
			if text = r.Verdict.Text; r.Verdict.Bad() {
				bad++
			}
			if at := r.Position.Event; at != nil {
				lag = plain.Span(max(0, r.Now.Sub(*at)))
			}
		}
		if asJSON {
			return out.Encode(r)
		}
		_, err := fmt.Fprintf(tw, "%s\t%s\t%s\n", c.Name, lag, text)
		return err
	})
	if err == nil {
		err = tw.Flush()
	}
	if err == nil {
		err = failedOf(unread, len(bridges), "have no readable state")
	}
	if err == nil && check {
		err = failedOf(bad, len(bridges), "are degraded or not running")
	}
	return err
}

func readStatus(ctx context.Context, c *config.Config) (*status.Status, error) {
	r, done, err := setup.State(c)
	if err != nil {
		return nil, err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, setup.StateTimeout, setup.ErrSilent)
	defer cancel()
	return r.Status(ctx)
}
