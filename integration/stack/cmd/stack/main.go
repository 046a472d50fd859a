// Command stack starts Kafka, a schema registry and Azurite without Docker.
//
//	stack [-brokers n] up           keeps them up until Ctrl-C, and prints their addresses
//	stack [-brokers n] run CMD...   runs a command with their addresses in its environment, then stops them
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"time"

	"blobfeed/integration/stack"
)

func main() {
	ctx, cancel := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer cancel()
	code, err := run(ctx, os.Args[1:])
	if err != nil {
		fmt.Fprintln(os.Stderr, "stack:", err)
		code = 1
	}
	os.Exit(code)
}

func run(ctx context.Context, args []string) (code int, err error) {
	fs := flag.NewFlagSet("stack", flag.ContinueOnError)
	brokers := fs.Int("brokers", 1, "Kafka nodes, 1 or 3")
	if err := fs.Parse(args); err != nil {
		return 2, nil // it has said why
	}
	args = fs.Args()
	if len(args) == 0 || args[0] == "run" && len(args) < 2 || args[0] != "run" && args[0] != "up" {
		return 0, errors.New("usage: stack [-brokers n] up | run COMMAND")
	}
	logf := func(format string, a ...any) { fmt.Fprintf(os.Stderr, "stack: "+format+"\n", a...) }
	s, err := stack.Start(ctx, stack.Options{Brokers: *brokers, Registry: true, Azurite: true}, logf)
	if err != nil {
		return 0, err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	if args[0] == "up" {
		for _, e := range s.Env() {
			fmt.Printf("export %s\n", quote(e))
		}
		logf("up; Ctrl-C stops it")
		<-ctx.Done()
		return 0, nil
	}
	// A signal goes to the command first: it stops what it runs, then the stack goes.
	cmd := exec.CommandContext(ctx, args[1], args[2:]...)
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = 30 * time.Second
	cmd.Env = append(os.Environ(), s.Env()...)
	cmd.Stdin, cmd.Stdout, cmd.Stderr = os.Stdin, os.Stdout, os.Stderr
	var exit *exec.ExitError
	if err := cmd.Run(); errors.As(err, &exit) {
		return max(1, exit.ExitCode()), nil
	} else if err != nil {
		return 0, err
	}
	return 0, nil
}

// quote makes an assignment that a shell takes as it is.
func quote(assignment string) string {
	for i := range assignment {
		if assignment[i] == '=' {
			return assignment[:i+1] + "'" + assignment[i+1:] + "'"
		}
	}
	return assignment
}
