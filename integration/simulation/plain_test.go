//go:build !synctests

package simulation

import (
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"
)

// The tests of this package need the build tag synctests, see doc.go. Without it they run themselves again, with it.
func TestSimulation(t *testing.T) { again(t, "synctests", "") }

// What is taken out of the bridge is found.
func TestMutations(t *testing.T) {
	if testing.Short() {
		t.Skip("it builds the program once more, and runs it for each mutation")
	}
	for _, mutation := range []string{"fence", "read_first", "barrier", "split", "early", "believe", "hold"} {
		t.Run(mutation, func(t *testing.T) { again(t, "synctests,mutation", mutation) })
	}
}

func again(t *testing.T, tags, mutation string) {
	t.Helper()
	limit := time.Hour
	if deadline, ok := t.Deadline(); ok {
		limit = time.Until(deadline) - 5*time.Second
	}
	args := []string{"test", "-vet=off", "-count=1", "-tags", tags, fmt.Sprintf("-timeout=%s", limit), "."}
	cmd := exec.CommandContext(t.Context(), "go", args...)
	// Read by name, so that a result in the cache is of the same values.
	cmd.Env = append(os.Environ(), "MUTATION="+mutation)
	for _, name := range []string{"SIM_SEED", "SIM_SEEDS", "SIM_FIRST", "SIM_REPEAT", "SIM_DURATION", "SIM_SCAN_SEED",
		"SIM_TRACE_SEED"} {
		cmd.Env = append(cmd.Env, name+"="+os.Getenv(name))
	}
	if testing.Short() && mutation == "" {
		cmd.Args = append(cmd.Args, "-short")
		cmd.Env = append(cmd.Env, "SIM_SEEDS=6") // of 120
	}
	out, err := cmd.CombinedOutput()
	t.Logf("%s", out)
	if err != nil {
		t.Errorf("%v: %v", cmd.Args, err)
	}
}
