package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"os"
	"os/signal"
	"slices"
	"strings"
	"syscall"
	"text/tabwriter"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/internal/status"
)

const statusHelp = `
Reads the topic <BRIDGE_NAME>.offsets and the consumer group, nothing else: it works from anywhere that reaches the brokers.
It needs BRIDGE_KAFKA_BROKERS, BRIDGE_NAME where that is not the default, and what TLS and SASL take.
`

func statusVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("status", "[--output text|json] [--watch DURATION]", stderr, func(w io.Writer) { fmt.Fprint(w, statusHelp) })
	output := fs.String("output", "text", "text, or json: a document a line")
	watch := fs.Duration("watch", 0, "print it again every so long, until stopped")
	if err := parse(fs, args); err != nil {
		return err
	}
	asJSON, err := wantsJSON(*output)
	if err != nil {
		return err
	}
	if *watch < 0 {
		return &usageError{fmt.Errorf("--watch %s: want a duration such as 2s", *watch)}
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	r, done, err := connectAny()
	if err != nil {
		return err
	}
	defer done()
	if err := showStatus(ctx, r, stdout, asJSON, nil); err != nil || *watch == 0 {
		return err
	}
	var screen io.Writer // to overwrite
	if out, ok := stdout.(*plain.Writer); ok {
		if f, ok := out.Unwrap().(*os.File); ok && terminal(f) {
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
		if err := showStatus(ctx, r, stdout, asJSON, screen); err != nil && ctx.Err() == nil {
			fmt.Fprintln(stderr, "bridge:", plain.Line(err.Error())) // brokers may come back
		}
	}
}

func showStatus(ctx context.Context, r *reader, out io.Writer, asJSON bool, screen io.Writer) error {
	ctx, cancel := context.WithTimeoutCause(ctx, stateTimeout, errSilent)
	defer cancel()
	s, err := r.Status(ctx)
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(out).Encode(s)
	}
	if screen != nil {
		fmt.Fprint(screen, "\x1b[H\x1b[2J")
	}
	_, err = io.WriteString(out, statusText(s))
	return err
}

func statusText(s *status.Status) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%s at %s\n", s.Name, s.Now.Format(time.RFC3339))
	if !s.Started {
		b.WriteString("has no progress: its next start is a first start\n")
	} else {
		p := s.Position
		fmt.Fprintf(&b, "feed      %s\n", s.Feed)
		fmt.Fprintf(&b, "segment   %s, complete up to %s", orDash(p.Current), orDash(p.Completed))
		if p.Ended {
			b.WriteString(", ended at BRIDGE_END_TIME")
		}
		if p.Gaps > 0 {
			fmt.Fprintf(&b, ", history lost %d times", p.Gaps)
		}
		if p.Seek != nil {
			fmt.Fprintf(&b, ", after a seek from %s to %s", orDash(p.Seek.From.String()), p.Seek.To)
		}
		fmt.Fprintf(&b, "\nresolved  %s\nevent     %s\nahead     %s\n", moment(p.Resolved, s.Lag.Resolved), moment(p.Event, s.Lag.Event), ahead(s.Lag.Ahead))
		n := s.Totals
		fmt.Fprintf(&b, "events    %d read, %d records, %d filtered, %d late, %d dead letters\n", n.Read, n.Emitted, n.Filtered, n.Late, n.DeadLettered)
		for _, t := range s.Topics {
			fmt.Fprintf(&b, "topic     %s, %d partitions\n", t.Name, t.Partitions)
		}
	}
	fmt.Fprintf(&b, "group     %s, %d members\n", orDash(s.Group.State), len(s.Group.Members))
	for _, m := range s.Group.Members {
		fmt.Fprintf(&b, "  %s at %s, leases %s\n", plain.Line(m.Instance), plain.Line(orDash(m.Host)),
			strings.Trim(fmt.Sprint(m.Leases), "[]"))
	}
	b.WriteString(leaseTable(s))
	for _, e := range s.Errors { // the last ones, also when they are over: what was committed since tells
		since := ""
		if at := s.Leases[e.Lease].Committed; at != nil {
			since = fmt.Sprintf(", %s before its last commit", plain.Span(max(0, at.Sub(e.Time))))
		}
		fmt.Fprintf(&b, "last error of lease %d at %s%s: %s\n", e.Lease, e.Time.Format(time.RFC3339), since,
			plain.Line(e.Error))
	}
	return b.String()
}

// ahead writes how much is listed and not read.
func ahead(bytes *int64) string {
	if bytes == nil {
		return "unknown: no lease has committed in a current segment"
	}
	return fmt.Sprintf("%d bytes listed in the segment and not read, at the last commits", *bytes)
}

// withFrontier is where a lease is whose cursor is behind: complete segments leave no trace in cursors.
const withFrontier = "with the frontier"

func leaseTable(s *status.Status) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "lease\tstate\towner\tsegment\tshards\tevents\tahead\tcommitted")
	unused := 0
	for _, l := range s.Leases {
		if l.Segment == "" && l.Owner == "" {
			unused++
			continue
		}
		segment := orDash(l.Segment)
		switch {
		case l.Frontier:
			segment = withFrontier
		case l.Done:
			segment += " done"
		}
		var shards []string
		for _, shard := range slices.Sorted(maps.Keys(l.Shards)) {
			shards = append(shards, shard+":"+l.Shards[shard])
		}
		committed := "-"
		if l.Committed != nil {
			committed = l.Committed.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%d\t%d\t%s\n", l.Lease, l.State, plain.Line(orDash(l.Owner)), segment,
			orDash(strings.Join(shards, " ")), l.Events, l.Ahead, committed)
	}
	_ = w.Flush() // into memory
	if unused > 0 {
		fmt.Fprintf(&b, "%d more leases have had no work\n", unused)
	}
	return b.String()
}

// moment writes a time and how long ago it is.
func moment(t *time.Time, ago *float64) string {
	if t == nil || ago == nil {
		return "-"
	}
	return fmt.Sprintf("%s, %s ago", t.Format(time.RFC3339), plain.Span(time.Duration(*ago*float64(time.Second))))
}
