package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"blobfeed/offsets"
)

// changeTimeout bounds taking lease 0 and writing the move.
const changeTimeout = 2 * time.Minute

// plan is what seek or reset is about to do to the state, for people to read first.
type plan struct {
	Name    string   `json:"name"`
	Rows    []row    `json:"changes"`
	Notes   []string `json:"notes"`
	Members []string `json:"members"` // live instances
	Done    bool     `json:"done"`
}

type row struct {
	What   string `json:"what"`
	Before string `json:"before"`
	After  string `json:"after"`
}

func (c *plan) add(what, before, after string) {
	c.Rows = append(c.Rows, row{what, orDash(before), orDash(after)})
}

func (c *plan) note(format string, args ...any) {
	c.Notes = append(c.Notes, fmt.Sprintf(format, args...))
}

// changeFlags are those of both verbs.
type changeFlags struct {
	yes, force *bool
	output     *string
}

func newChangeFlags(fs *flag.FlagSet) changeFlags {
	return changeFlags{
		yes:    fs.Bool("yes", false, "do it; without, it is only shown"),
		force:  fs.Bool("force", false, "do it although instances run: they notice, and continue from what is there then"),
		output: fs.String("output", "text", "text or json"),
	}
}

// run shows what is to be done, and does it if the flags say so.
func (f changeFlags) run(ctx context.Context, stdout io.Writer, fill func(*offsets.State, *plan) error, do func(context.Context, *offsets.Seized) error) error {
	asJSON, err := wantsJSON(*f.output)
	if err != nil {
		return err
	}
	r, done, err := connectAny()
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeoutCause(ctx, changeTimeout, errSilent)
	defer cancel()
	state, err := r.State(ctx)
	if err != nil {
		return err
	}
	if f := state.Frontier; f != nil && f.Settings["BRIDGE_DELIVERY"] != "" {
		r.config.Delivery = f.Settings["BRIDGE_DELIVERY"] // of the instances; the operator's environment may lack it
	}
	group, err := r.Group(ctx)
	if err != nil {
		return err
	}
	c := &plan{Name: r.Name, Notes: []string{}, Members: []string{}}
	for _, m := range group.Members {
		c.Members = append(c.Members, m.Instance)
	}
	if err := fill(state, c); err != nil {
		return err
	}
	if !asJSON {
		c.text(stdout)
	}
	if *f.yes {
		if err := f.allowed(r, c.Members); err != nil {
			return err
		}
		if err := seized(ctx, r, len(state.Cursors), do); err != nil {
			return err
		}
		c.Done = true
	}
	if asJSON {
		return json.NewEncoder(stdout).Encode(c)
	}
	last := "nothing changed; add --yes"
	if c.Done {
		last = "done"
	}
	_, err = fmt.Fprintln(stdout, last)
	return err
}

// allowed refuses while instances run.
func (f changeFlags) allowed(r *reader, members []string) error {
	if len(members) == 0 {
		return nil
	}
	who := strings.Join(members, ", ")
	if !*f.force {
		return fmt.Errorf("group %s has live members (%s): stop them and wait for BRIDGE_SESSION_TIMEOUT (one that was killed is a member until then), or add --force", r.Name, who)
	}
	if r.config.Delivery != "exactly_once" {
		return fmt.Errorf("group %s has live members (%s), and without transactions nothing keeps them from writing: stop them", r.Name, who)
	}
	return nil
}

// seized takes lease 0 and calls do.
func seized(ctx context.Context, r *reader, leases int, do func(context.Context, *offsets.Seized) error) error {
	c := r.config
	s, err := offsets.Seize(ctx, &offsets.Config{Topic: r.Topic, Name: c.Name, Instance: c.Instance + "-cli", Transactional: c.Delivery == "exactly_once",
		TxnTimeout: c.TxnTimeout, Client: r.Client, Now: r.Now}, leases)
	if err == nil {
		defer s.Close(ctx)
		err = do(ctx, s)
	}
	if errors.Is(err, offsets.ErrFenced) {
		return fmt.Errorf("%w: an instance that runs has taken lease 0 back, and nothing has changed; "+
			"repeat the command", err)
	}
	return err
}

func (c *plan) text(out io.Writer) {
	w := tabwriter.NewWriter(out, 0, 0, 2, ' ', 0)
	fmt.Fprintf(w, "%s\tnow\tafterwards\n", c.Name)
	for _, r := range c.Rows {
		fmt.Fprintf(w, "%s\t%s\t%s\n", r.What, r.Before, r.After)
	}
	_ = w.Flush() // the terminal is gone: nobody to tell
	for _, n := range c.Notes {
		fmt.Fprintf(out, "- %s\n", n)
	}
	if len(c.Members) > 0 {
		fmt.Fprintf(out, "- These instances run: %s.\n", strings.Join(c.Members, ", "))
	}
}
