// Command stack starts Kafka, a schema registry and Azurite without Docker.
//
//	stack up [--brokers N]                starts them, prints their addresses for a shell, runs until Ctrl-C
//	stack run [--brokers N] CMD [ARGS]    runs a command with their addresses in its environment, then stops them
//
// What KAFKA_BROKERS, SCHEMA_REGISTRY_URL and AZURE_STORAGE_CONNECTION_STRING name is used by run, not started.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"blobfeed/integration/stack"
)

const usage = "usage: stack up [--brokers N] | stack run [--brokers N] CMD [ARGS]"

// Exit codes of the program itself; run passes the command's through.
const (
	exitFailed = 1
	exitUsage  = 2
)

var errUsage = errors.New(usage)

func main() {
	code, err := run(os.Args[1:], os.Stdout, os.Stderr)
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		code = exitFailed
		if errors.Is(err, errUsage) {
			code = exitUsage
		}
	}
	os.Exit(code)
}

// arguments are what the command line says.
type arguments struct {
	verb    string
	options stack.Options
	command []string // of run
}

// parse takes flags before and after the verb. What follows belongs to the command.
func parse(args []string, stderr io.Writer) (arguments, error) {
	a := arguments{options: stack.Options{Registry: true, Azurite: true}}
	fs := flag.NewFlagSet("stack", flag.ContinueOnError)
	fs.SetOutput(stderr)
	fs.Usage = func() { fmt.Fprintln(stderr, usage); fs.PrintDefaults() }
	fs.IntVar(&a.options.Brokers, "brokers", 1, "Kafka nodes: 1 or 3")
	fs.BoolVar(&a.options.Throughput, "throughput", false,
		"run brokers with more heap and the full compiler, to measure")
	if err := fs.Parse(args); err != nil {
		return a, err
	}
	if fs.NArg() == 0 {
		return a, errUsage
	}
	a.verb = fs.Arg(0)
	if err := fs.Parse(fs.Args()[1:]); err != nil {
		return a, err
	}
	a.command = fs.Args()
	switch {
	case a.options.Brokers != 1 && a.options.Brokers != 3:
		return a, fmt.Errorf("--brokers is %d, want 1 or 3; %w", a.options.Brokers, errUsage)
	case a.verb == "up" && len(a.command) == 0, a.verb == "run" && len(a.command) > 0:
		return a, nil
	}
	return a, errUsage
}

func run(args []string, stdout, stderr io.Writer) (code int, err error) {
	a, err := parse(args, stderr)
	if errors.Is(err, flag.ErrHelp) {
		return 0, nil
	} else if err != nil {
		return 0, err
	}
	logf := func(format string, v ...any) { fmt.Fprintf(stderr, "stack: "+format+"\n", v...) }

	// One channel for the whole life: no signal falls between the start and what comes after.
	signals := make(chan os.Signal, 4)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	began := time.Now()
	s, err := begin(a, logf, signals)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	logf("up after %s", time.Since(began).Round(100*time.Millisecond))
	if a.verb == "run" {
		return execute(a.command, s.Env(), signals, logf)
	}
	for _, e := range s.Env() {
		name, value, _ := strings.Cut(e, "=")
		fmt.Fprintf(stdout, "export %s='%s'\n", name, strings.ReplaceAll(value, "'", `'\''`))
	}
	logf("Ctrl-C stops it and removes its data")
	<-signals
	return 0, nil
}

// begin starts the stack. A signal meanwhile stops it.
func begin(a arguments, logf func(string, ...any), signals <-chan os.Signal) (*stack.Stack, error) {
	ctx, cancel := context.WithCancelCause(context.Background())
	defer cancel(nil)
	ended := make(chan struct{})
	watched := make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case sig := <-signals:
			cancel(fmt.Errorf("stopped by a signal: %s", sig))
		case <-ended:
		}
	}()
	get := stack.Start
	if a.verb == "run" {
		get = stack.Complete
	}
	s, err := get(ctx, a.options, logf)
	close(ended)
	<-watched
	if err == nil && ctx.Err() != nil { // the signal came last
		return nil, errors.Join(context.Cause(ctx), s.Close())
	}
	return s, err
}
