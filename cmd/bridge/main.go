// Command bridge carries every change of every blob in an Azure Storage account into Kafka.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"

	"blobfeed/bridge"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/verify/judge"
)

// Exit codes, part of the interface.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // arguments or settings
	exitFenced = 3 // another instance has taken over
	exitBroken = 4 // verify: a promise is broken
)

// verb is one of the program's commands. Run gets the arguments after the verb.
type verb struct {
	name, summary string
	run           func(ctx context.Context, args []string, stdout, stderr io.Writer) error
}

func verbs() []verb {
	return []verb{
		{"run", "carry the feed into Kafka until stopped; --once: what it holds now", runVerb},
		{"demo", "the same on an embedded broker and a sample feed that grows", demoVerb},
		{"check", "try what run needs of the feed and of Kafka, and say what to do", checkVerb},
		{"status", "print where the bridge is, who works, how late it is, and what is wrong, from Kafka alone", statusVerb},
		{"seek", "move the place where the bridge goes on, back or forward", seekVerb},
		{"reset", "remove the bridge's progress: the next start is a first start", resetVerb},
		{"replay", "deliver the events between two times once more, into another topic", replayVerb},
		{"dump", "print a feed, a segment, a chunk, an event by its position, or the bridge's own state", dumpVerb},
		{"verify", "check a topic against what is promised of it; --feed: against the feed, too", verifyVerb},
		{"healthcheck", "ask the instance on this machine whether it is ready; for probes of containers", healthcheckVerb},
		{"config", "print the settings in force, secrets masked; --format: the reference of all settings", configVerb},
		{"metrics", "print the metrics reference (--format markdown)", metricsVerb},
		{"version", "print the version", versionVerb},
	}
}

func main() { os.Exit(execute(context.Background(), os.Args[1:], os.Stdout, os.Stderr)) }

// execute runs a verb. What is printed holds names and texts of others: a terminal must not act on them. The log, which
// may redraw a line, escapes by itself.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	out, errs := plain.NewWriter(stdout), plain.NewWriter(stderr)
	code := dispatch(ctx, args, out, stderr, errs)
	if err := errors.Join(out.Flush(), errs.Flush()); err != nil && code == exitOK {
		return exitFailed
	}
	return code
}

func dispatch(ctx context.Context, args []string, stdout, stderr, errs io.Writer) int {
	if len(args) == 0 {
		help(stderr)
		return exitUsage
	}
	if slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		help(stdout)
		return exitOK
	}
	i := slices.IndexFunc(verbs(), func(v verb) bool { return v.name == args[0] })
	if i < 0 {
		fmt.Fprintf(errs, "bridge: there is no verb %q\n\n", args[0])
		help(stderr)
		return exitUsage
	}
	err := verbs()[i].run(ctx, args[1:], stdout, stderr)
	var usage *usageError
	var settings *bridge.SettingsError
	var broken *judge.BrokenError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK
	case errors.As(err, &usage), errors.As(err, &settings):
		fmt.Fprintln(errs, "bridge:", err)
		return exitUsage
	case errors.Is(err, offsets.ErrFenced):
		fmt.Fprintln(errs, "bridge:", plain.Clip(err.Error()))
		return exitFenced
	case errors.As(err, &broken):
		fmt.Fprintln(errs, "bridge:", err)
		return exitBroken
	default:
		fmt.Fprintln(errs, "bridge:", plain.Clip(err.Error()))
		return exitFailed
	}
}

func help(w io.Writer) {
	fmt.Fprint(w, "bridge carries every change of every blob in an Azure Storage account into Kafka.\n\nusage: bridge <verb> [flags]\n\n")
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-11s  %s\n", v.name, v.summary)
	}
	fmt.Fprint(w, "\nSettings are environment variables, or a file (--config): see bridge run --help.\nExit codes: 0 ok, 1 failed, 2 usage or settings, 3 fenced, 4 verification failed.\n")
}
