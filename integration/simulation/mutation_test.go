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
	if mutation == "hold" {
		t.Skip("an event would have to be written between the answer and the commit of a page: see TestTracedMutant")
	}
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
	for seed := range uint64(tracedMutants) {
		if problem := problemOf(t, NewTracePlan(seed)); problem != "" {
			t.Logf("MUTATION=%s is found by seed %d: %s", mutation, seed, problem)
			return
		}
	}
	t.Errorf("MUTATION=%s: no seed below %d finds it", mutation, tracedMutants)
}

// tracedMutants is mutants for plans that are traced: most are found by the first ten, believe by one of two hundred.
const tracedMutants = 600

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
