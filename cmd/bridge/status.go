package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"sync"
	"syscall"
	"text/tabwriter"
	"time"

	"blobfeed/internal/config"
	"blobfeed/internal/plain"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/offsets"
)

const statusHelp = `
Reads only the topic <BRIDGE_NAME>.offsets and the consumer group, so it works from anywhere that reaches the brokers.
If BRIDGE_SOURCE_URL is a directory of this machine, it also reports a copy of the feed that lacks the position.
Needs BRIDGE_KAFKA_BROKERS, BRIDGE_NAME unless it is the default, and the settings for TLS and SASL.
`

func statusVerb(ctx context.Context, env config.Env, args []string, stdout, stderr io.Writer) error {
	usage := "[--all] [--output text|json] [--check] [--watch DURATION]"
	fs := flags(env, "status", usage, stdout, func(w io.Writer) { fmt.Fprint(w, statusHelp) })
	all := fs.Bool("all", false, "report on every bridge of the settings file, a line for each")
	check := fs.Bool("check", false, "exit code 1 if the bridge is degraded or nobody is running")
	watch := fs.Duration("watch", 0, "repeat the report at this interval until stopped")
	asJSON, err := parseOutput(fs, args, "one document per line")
	if err != nil {
		return err
	}
	if *watch < 0 {
		return &usageError{fmt.Errorf("--watch %s: want a duration such as 2s", *watch)}
	}
	if *check && *watch > 0 {
		return &usageError{errors.New("--check reports once: remove --watch")}
	}
	if *all && *watch > 0 {
		return &usageError{errors.New("--all reports once: remove --watch")}
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	if *all {
		return statusOfAll(ctx, env, stdout, asJSON, *check)
	}
	_, r, done, err := openState(env)
	if err != nil {
		return err
	}
	defer done()
	s, err := showStatus(ctx, r, stdout, asJSON, nil)
	if err == nil && *check && s.Verdict.Bad() {
		return errors.New(s.Verdict.Text)
	}
	if err != nil || *watch == 0 {
		return err
	}
	var screen io.Writer // to overwrite
	if out, ok := stdout.(*plain.Writer); ok {
		if f, ok := out.Unwrap().(*os.File); ok && progress.Terminal(f) {
			screen = f
		}
	}
	t := time.NewTicker(*watch)
	defer t.Stop()
	for {
		select {
		case <-t.C:
		case <-ctx.Done():
			return nil
		}
		if _, err := showStatus(ctx, r, stdout, asJSON, screen); err != nil && ctx.Err() == nil {
			fmt.Fprintln(stderr, "bridge:", plain.Line(err.Error())) // brokers may come back
		}
	}
}

func showStatus(
	ctx context.Context, r *status.Reader, out io.Writer, asJSON bool, screen io.Writer,
) (*status.Status, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, setup.StateTimeout, status.ErrSilent)
	defer cancel()
	s, err := r.Status(ctx)
	if err != nil {
		return nil, err
	}
	if asJSON {
		return s, json.NewEncoder(out).Encode(s)
	}
	if screen != nil {
		fmt.Fprint(screen, "\x1b[H\x1b[2J")
	}
	_, err = io.WriteString(out, s.Text())
	return s, err
}

// report is what status --all says of a bridge.
type report struct {
	Name           string          `json:"name"`
	*status.Status                 // nil if it cannot be read
	Error          string          `json:"error,omitempty"`
	Rejected       *status.Problem `json:"rejected,omitempty"` // why run would reject its settings in the file
}

// statusOfAll reports on every bridge of the settings file. With check, it is an error if one is degraded, or nobody
// runs it. A bridge whose state cannot be read, or whose settings are rejected, always is one.
func statusOfAll(ctx context.Context, env config.Env, stdout io.Writer, asJSON, check bool) error {
	f, bridges, err := allBridges(env)
	if err != nil {
		return err
	}
	bad, unread, unfit := 0, 0, 0
	out := json.NewEncoder(stdout)
	tw := tabwriter.NewWriter(stdout, 0, 0, 2, ' ', 0)
	if !asJSON {
		fmt.Fprint(tw, "bridge\tlast event\tverdict\n") // as old as
	}
	var mu sync.Mutex
	var works string // an instance that runs a bridge of the file
	ask := func(c *config.Config) report {
		r := report{Name: c.Name}
		no := errors.Join(f.Rejected[c.Name]...)
		err := setup.InState(ctx, c, func(
			ctx context.Context, reader *status.Reader, state *offsets.State,
		) (err error) {
			if no == nil {
				no = rejected(c, state)
			}
			r.Status, err = reader.Of(ctx, state)
			return err
		})
		if no != nil {
			text, do := plain.SplitRemedy(no)
			r.Rejected = &status.Problem{Cause: strings.ReplaceAll(text, "\n", "; "), Remedy: do}
		}
		if never, is := errors.AsType[*status.NeverRanError](err); is {
			r.Error = "it has no state in topic " + never.Topic + " yet; if run fails, its log and its page say why"
		} else if err != nil {
			r.Error = err.Error()
		} else if members := r.Group.Members; len(members) > 0 {
			mu.Lock()
			works = members[0].Instance
			mu.Unlock()
		}
		return r
	}
	err = forAll(bridges, ask, func(c *config.Config, r report) error {
		text, do, lag := "unknown: "+plain.Line(r.Error), "", "-"
		if r.Status == nil {
			unread++
		} else {
			if works != "" && r.Verdict.Code == status.Nobody {
				r.Verdict = r.AwayFrom(works)
			}
			if text, do = r.Verdict.Text, r.Verdict.Remedy; r.Verdict.Bad() {
				bad++
			}
			if at := r.Position.Event; at != nil {
				lag = plain.Span(max(0, r.Now.Sub(*at)))
			}
		}
		if r.Rejected != nil {
			unfit++
		}
		if asJSON {
			return out.Encode(r)
		}
		fmt.Fprintf(tw, "%s\t%s\t%s\n", c.Name, lag, text)
		if do != "" {
			fmt.Fprintf(tw, "\t\t-> %s\n", do)
		}
		if no := r.Rejected; no != nil {
			fmt.Fprintf(tw, "\t\tits settings in the file are rejected: %s\n", plain.Line(no.Cause))
			if no.Remedy != "" {
				fmt.Fprintf(tw, "\t\t-> %s\n", no.Remedy)
			}
		}
		return nil
	})
	if err == nil {
		err = tw.Flush() // and what could not be written before
	}
	if err == nil && unfit > 0 {
		return &settingsError{failedOf(unfit, len(bridges), "have settings in the file that are rejected")}
	}
	if err == nil {
		err = failedOf(unread, len(bridges), "have no readable state")
	}
	if err == nil && check {
		err = failedOf(bad, len(bridges), "are degraded or not running")
	}
	return err
}

// rejected returns why run would reject the settings of the file, while an instance with the former ones may run on.
// Nil: it would not, or that is unknown here.
func rejected(c *config.Config, state *offsets.State) error {
	if state.Frontier == nil {
		return nil
	}
	o, err := setup.Options(c, setup.Observe{})
	if err == nil {
		err = o.Stored().Fit(state)
	}
	if !errors.As(err, new(*plain.SettingsError)) {
		return nil
	}
	return err
}
