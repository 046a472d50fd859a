//go:build synctests && mutation

package simulation

import (
	"os"
	"testing"
)

// mutants is how many seeds have to find what MUTATION takes out.
const mutants = 200

func TestMutant(t *testing.T) {
	for seed := range uint64(mutants) {
		if r := simulate(t, seed); len(r.Problems) > 0 {
			t.Logf("MUTATION=%s is found by seed %d: %s", os.Getenv("MUTATION"), seed, r.Problems[0])
			return
		}
	}
	t.Errorf("MUTATION=%s: no seed below %d finds it", os.Getenv("MUTATION"), mutants)
}
