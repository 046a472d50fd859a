// Command bridge carries the whole change feed of an Azure Storage account into Kafka.
package main

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"

	// The image holds nothing but this program, so the program brings the public certificate authorities (Mozilla's).
	// Where the system has its own, or SSL_CERT_FILE names some, those count and these do not.
	_ "golang.org/x/crypto/x509roots/fallback"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/offsets"
	"blobfeed/verify/judge"
)

// Exit codes, part of the interface.
const (
	exitOK     = 0
	exitFailed = 1
	exitUsage  = 2 // arguments; also what Go's runtime ends with after a panic
	exitFenced = 3 // another instance has taken over
	exitBroken = 4 // verify: a promise is broken
	// Settings: EX_CONFIG of sysexits.h. A code of their own: a supervisor restarts after a panic, and not after these.
	exitSettings = 78
)

// verb is a command of the program. Run gets the arguments after the verb.
type verb struct {
	name, summary string
	run           func(ctx context.Context, env config.Env, args []string, stdout, stderr io.Writer) error
}

func verbs() []verb {
	return []verb{
		{"run", "deliver the feed to Kafka until stopped; with --once, only what the feed holds now", runVerb},
		{"tail", "print the feed's records as it grows; no Kafka", tailVerb},
		{"demo", "run on an embedded broker and a sample feed that grows", demoVerb},
		{"check", "test what run needs of the feed and of Kafka, and print how to fix problems", checkVerb},
		{"status", "show position, instances, lag and recent errors, from Kafka alone", statusVerb},
		{"seek", "move the bridge back or forward in the feed", seekVerb},
		{"reset", "delete the bridge's progress: the next start is a first start", resetVerb},
		{"scan", "list the account and write a row for each blob, while the bridge runs", scanVerb},
		{"replay", "deliver the events between two times again, to another topic", replayVerb},
		{"find", "show where a change is: its event in the feed, and its record in Kafka", findVerb},
		{"dump", "print a feed, a segment, a chunk, an event by its position, or the bridge's state", dumpVerb},
		{"verify", "check a topic against the bridge's promises; with --feed, also against the feed", verifyVerb},
		{"healthcheck", "check whether the local instance is ready; for container probes", healthcheckVerb},
		{"config", "print the effective settings, secrets masked; with --format, what they need of Kafka", configVerb},
		{"metrics", "print the metrics reference (--format markdown)", metricsVerb},
		{"version", "print the version", versionVerb},
	}
}

func main() {
	os.Exit(execute(context.Background(), config.Environ(), os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs a verb. The output has names and texts that others chose, and a terminal must not act on them, so it is
// escaped. The log escapes on its own, because it may redraw a line.
func execute(ctx context.Context, env config.Env, args []string, stdout, stderr io.Writer) int {
	out, errs := plain.NewWriter(stdout), plain.NewWriter(stderr)
	code := dispatch(ctx, env, args, out, stderr, errs)
	if err := out.Flush(); err != nil && code == exitOK && !errors.Is(err, syscall.EPIPE) { // head has read enough
		fmt.Fprintln(errs, "bridge:", err)
		code = exitFailed
	}
	_ = errs.Flush() // there is nowhere left to say it
	return code
}

func dispatch(ctx context.Context, env config.Env, args []string, stdout *plain.Writer, stderr, errs io.Writer) int {
	if len(args) == 0 {
		help(stderr)
		return exitUsage
	}
	if slices.Contains([]string{"help", "-h", "--help"}, args[0]) {
		if len(args) == 1 {
			help(stdout)
			return exitOK
		}
		args = []string{args[1], "--help"}
	}
	if slices.Contains([]string{"-v", "--version"}, args[0]) {
		args[0] = "version"
	}
	i := slices.IndexFunc(verbs(), func(v verb) bool { return v.name == args[0] })
	if i < 0 {
		unknown(errs, stderr, args[0])
		return exitUsage
	}
	v := verbs()[i]
	judges := slices.Contains([]string{"check", "status", "verify", "demo"}, v.name)
	if judges && progress.Colours(env, stdout.Unwrap()) {
		stdout.Colour()
	}
	code, text, do := outcome(env, v.name, v.run(ctx, env, args[1:], stdout, stderr))
	f, _ := stderr.(*os.File)
	switch people := f != nil && progress.Terminal(f); {
	case text == "":
	case people:
		fmt.Fprintln(errs, "bridge:", apart(text, do))
	case v.name == "run" && code != exitUsage:
		logFailure(env, stderr, code, text)
	default:
		fmt.Fprintln(errs, "bridge:", text)
	}
	return code
}

// apart puts the remedy that a text ends with on a line of its own.
func apart(text, do string) string {
	if cause, is := strings.CutSuffix(text, ": "+do); is && do != "" {
		return cause + "\n-> " + do
	}
	return text
}

// needs are rights of verbs that run may do without, so that bridge check does not know them.
var needs = map[string]string{
	"find":   "Read on the topics of records and dead letters",
	"status": "Read on the topic of progress, and Describe on the group",
	"verify": "Read and DescribeConfigs on the topics of records, markers and dead letters",
}

// outcome returns the exit code of a verb, and what to say about its error, "" if there is nothing to say; do is the
// remedy in it.
func outcome(env config.Env, verb string, err error) (code int, text, do string) {
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return exitOK, "", ""
	case errors.As(err, new(*usageError)):
		return exitUsage, err.Error(), ""
	case errors.As(err, new(*settingsError)), errors.As(err, new(*plain.SettingsError)):
		_, do = plain.SplitRemedy(err)
		return exitSettings, err.Error(), do
	case errors.Is(err, offsets.ErrFenced):
		return exitFenced, plain.Clip(err.Error()), ""
	case errors.As(err, new(*judge.BrokenError)):
		return exitBroken, err.Error(), ""
	}
	if rights := needs[verb]; rights != "" && kafka.Denied(err) {
		err = plain.WithRemedy(err, fmt.Sprintf("bridge %s needs %s: see docs/security.md", verb, rights))
	}
	err = advise(env, err)
	_, do = plain.SplitRemedy(err)
	return exitFailed, plain.Clip(err.Error()), do
}

// logFailure writes what run ends with as the last line of its log: programs read that, line by line.
func logFailure(env config.Env, stderr io.Writer, code int, text string) {
	c, _ := env.LoadKafka() // problems are those of the verb
	log, _ := progress.New(c, stderr)
	text = strings.ReplaceAll(strings.ReplaceAll(text, ":\n", ": "), "\n", "; ")
	log.Error("run has failed", "error", text, "exit_code", code)
}

// meant are verbs of other programs, by what they are here.
var meant = map[string]string{"start": "run", "serve": "run", "up": "run", "validate": "check", "test": "check",
	"lag": "status", "log": "status", "logs": "status", "ps": "status", "info": "status", "consume": "tail"}

// unknown says that there is no such verb. Who mistyped one needs no list of all.
func unknown(errs, stderr io.Writer, name string) {
	if name == "stop" {
		fmt.Fprintln(errs, "bridge: unknown verb \"stop\"; press Ctrl-C where run runs, or send its process SIGTERM")
		return
	}
	if strings.HasPrefix(name, "-") {
		fmt.Fprintf(errs, "bridge: the verb comes first, then its flags: bridge run %s …\n", name)
		return
	}
	var names []string
	begun := ""
	for _, v := range verbs() {
		if names = append(names, v.name); begun == "" && name != "" && strings.HasPrefix(v.name, name) {
			begun = v.name
		}
	}
	if best := cmp.Or(meant[name], begun, plain.Nearest(name, names, 2)); best != "" {
		fmt.Fprintf(errs, "bridge: unknown verb %q; did you mean %s?\n", name, best)
		return
	}
	fmt.Fprintf(errs, "bridge: unknown verb %q\n\n", name)
	help(stderr)
}

func help(w io.Writer) {
	fmt.Fprint(w, "bridge delivers the change feed of an Azure Storage account to Kafka.\n\n"+
		"usage: bridge <verb> [flags]\n\n")
	for _, v := range verbs() {
		fmt.Fprintf(w, "  %-11s  %s\n", v.name, v.summary)
	}
	fmt.Fprint(w, "\nSettings are environment variables, or a file (--config): see bridge run --help.\n"+
		"Exit codes: 0 ok, 1 failed, 2 usage, 3 fenced, 4 verification failed, 78 invalid settings.\n")
}

// version is set by the linker for releases.
var version string

func versionText() string {
	if version != "" {
		return version
	}
	if info, ok := debug.ReadBuildInfo(); ok {
		for _, s := range info.Settings {
			if s.Key == "vcs.revision" {
				return "devel-" + s.Value[:min(12, len(s.Value))]
			}
		}
	}
	return "devel"
}

func versionVerb(_ context.Context, _ config.Env, args []string, stdout, _ io.Writer) error {
	if err := parse(flags(nil, "version", "", stdout, nil), args); err != nil {
		return err
	}
	_, err := fmt.Fprintf(stdout, "bridge %s %s %s/%s\n",
		versionText(), runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return err
}

// adviser adds to the errors of a bridge what a user can do about them, for the log, the state and the page.
type adviser struct{ of *instance }

var _ bridge.Adviser = adviser{}

// Advise implements bridge.Adviser.
func (a adviser) Advise(err error) error { return setup.Advised(a.of.config, &a.of.client, err) }

// advise does so for the error that a verb ends with. Of the settings it needs only how the brokers are reached.
func advise(env config.Env, err error) error {
	c, _ := env.LoadKafka() // problems are those of the verb
	client, unusable := setup.Kafka(c, "", 1)
	if unusable != nil {
		return err
	}
	return setup.Advised(c, &client, err)
}
