//go:build integration

package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"testing"
	"time"

	"blobfeed/integration/stack"
)

var (
	shared  *stack.Stack
	program string // as it is
	mutable string // with switches to take safety out
)

func TestMain(m *testing.M) { os.Exit(begin(m)) }

func begin(m *testing.M) int {
	dir, err := os.MkdirTemp("", "bridge-chaos")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(dir)
	program, mutable = filepath.Join(dir, "bridge"), filepath.Join(dir, "mutable")
	for out, tags := range map[string]string{program: "", mutable: "mutation"} {
		if err := stack.Build(out, tags); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
	}
	if shared, err = stack.Start(context.Background(), Stack, nil); err != nil {
		fmt.Fprintln(os.Stderr, "starting the stack:", err)
		return 1
	}
	defer shared.Close()
	return m.Run()
}

// number returns a number from the environment.
func number(t *testing.T, name string, otherwise uint64) uint64 {
	t.Helper()
	text := os.Getenv(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return n
}

// Some 20 faults take a minute and a half. CHAOS_FAULTS=500 take half an hour; -artifacts keeps the instances' logs.
// CHAOS_DELIVERY=at_least_once is for a run without transactions. With MUTATION set (package mutation) it should fail,
// and mostly does.
func TestChaos(t *testing.T) {
	program := program
	if os.Getenv("MUTATION") != "" {
		program = mutable
	}
	o := Options{Seed: number(t, "CHAOS_SEED", uint64(time.Now().UnixNano())),
		Faults: int(number(t, "CHAOS_FAULTS", 20)), Program: program, Dir: t.ArtifactDir(),
		Repeats: os.Getenv("CHAOS_DELIVERY") == "at_least_once", Logf: t.Logf}
	t.Logf("CHAOS_SEED=%d CHAOS_FAULTS=%d", o.Seed, o.Faults)
	r, err := Run(t.Context(), shared, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Log(r)
	if len(r.Failures) > 0 {
		t.Errorf("CHAOS_SEED=%d CHAOS_FAULTS=%d fails", o.Seed, o.Faults)
	}
}
