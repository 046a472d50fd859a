//go:build synctests && mutation

package simulation

import (
	"fmt"
	"os"
	"testing"
)

// mutants is how many seeds have to find what MUTATION takes out.
const mutants = 200

func TestMutant(t *testing.T) {
	mutation := os.Getenv("MUTATION")
	for seed := range uint64(mutants) {
		if problem := problemOf(t, mutantPlan(seed, mutation)); problem != "" {
			t.Logf("MUTATION=%s is found by seed %d: %s", mutation, seed, problem)
			return
		}
	}
	t.Errorf("MUTATION=%s: no seed below %d finds it", mutation, mutants)
}

// TestTracedMutant finds it by the model of the protocol, or by a promise that is broken, with a few small plans.
func TestTracedMutant(t *testing.T) {
	mutation := os.Getenv("MUTATION")
	if mutation == "early" {
		t.Skip("two segments would have to be removed while the first of them is delivered: see TestMutant")
	}
	scans := 0
	for seed := uint64(0); seed < tracedMutants || mutation == "hold" && scans < tracedMutants/2; seed++ {
		if NewTracePlan(seed).Scans {
			scans++
		}
		if problem := problemOf(t, NewTracePlan(seed)); problem != "" {
			t.Logf("MUTATION=%s is found by seed %d: %s", mutation, seed, problem)
			return
		}
	}
	t.Errorf("MUTATION=%s: no seed below %d finds it", mutation, tracedMutants)
}

// tracedMutants is mutants for plans that are traced.
const tracedMutants = 50

// problemOf returns what is wrong with a run, "" if nothing is. A broken program may also leave goroutines that never end.
func problemOf(t *testing.T, p *Plan) (problem string) {
	defer func() {
		if x := recover(); x != nil {
			problem = fmt.Sprint(x)
		}
	}()
	if r, _ := simulate(t, p); len(r.Problems) > 0 {
		problem = r.Problems[0]
	}
	return problem
}
