package main

import (
	"errors"
	"io"
	"os"
	"path/filepath"
	"reflect"
	"syscall"
	"testing"
	"time"
)

func TestParse(t *testing.T) {
	for _, tc := range []struct {
		name    string
		args    []string
		kafka   int
		command []string
		fails   bool
	}{
		{name: "up", args: []string{"up"}, kafka: 1, command: []string{}},
		{name: "flag after the verb", args: []string{"up", "--brokers", "3"}, kafka: 3, command: []string{}},
		{name: "flag before the verb", args: []string{"-brokers=3", "run", "cmd"}, kafka: 3, command: []string{"cmd"}},
		{name: "flags of the command stay its own", args: []string{"run", "go", "test", "--brokers", "9", "./..."},
			kafka: 1, command: []string{"go", "test", "--brokers", "9", "./..."}},
		{name: "two dashes", args: []string{"run", "--brokers", "3", "--", "-x"}, kafka: 3, command: []string{"-x"}},
		{name: "nothing", fails: true},
		{name: "run nothing", args: []string{"run"}, fails: true},
		{name: "up something", args: []string{"up", "now"}, fails: true},
		{name: "unknown verb", args: []string{"down"}, fails: true},
		{name: "two brokers", args: []string{"up", "--brokers", "2"}, fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			a, err := parse(tc.args, io.Discard)
			if (err != nil) != tc.fails || tc.fails && !errors.Is(err, errUsage) {
				t.Fatalf("error %v, want one: %v", err, tc.fails)
			}
			if !tc.fails && (a.options.Brokers != tc.kafka || !reflect.DeepEqual(a.command, tc.command)) {
				t.Errorf("%d brokers and command %q, want %d and %q", a.options.Brokers, a.command, tc.kafka,
					tc.command)
			}
		})
	}
}

func TestExecute(t *testing.T) {
	sh := func(script string) []string { return []string{"sh", "-c", script} }
	for _, tc := range []struct {
		name    string
		command []string
		signals []os.Signal
		code    int
		fails   bool
	}{
		{name: "success", command: sh("exit 0")},
		{name: "its code", command: sh("exit 7"), code: 7},
		{name: "its environment", command: sh(`test "$KAFKA_BROKERS" = "a b" || exit 9`)},
		{name: "ended by a signal", command: sh("kill -KILL $$"), code: 137},
		{name: "a signal is passed on", command: sh(`touch "$READY"; exec sleep 60`),
			signals: []os.Signal{syscall.SIGTERM}, code: 143},
		{name: "the second kills", command: sh(`trap '' TERM; touch "$READY"; while :; do sleep 0.1; done`),
			signals: []os.Signal{syscall.SIGTERM, syscall.SIGTERM}, code: 137},
		{name: "no such command", command: []string{"/no/such/command"}, fails: true},
	} {
		t.Run(tc.name, func(t *testing.T) {
			signals := make(chan os.Signal, 4)
			ready := filepath.Join(t.TempDir(), "ready")
			go func() {
				if tc.signals == nil {
					return
				}
				for _, err := os.Stat(ready); err != nil; _, err = os.Stat(ready) { // before, it has set no trap
					time.Sleep(time.Millisecond)
				}
				for _, s := range tc.signals {
					signals <- s
				}
			}()
			code, err := execute(tc.command, []string{"KAFKA_BROKERS=a b", "READY=" + ready}, signals, t.Logf)
			if code != tc.code || (err != nil) != tc.fails {
				t.Errorf("code %d, error %v; want %d, error: %v", code, err, tc.code, tc.fails)
			}
		})
	}
}
