//go:build synctests && mutation

package simulation

import (
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// mutants is how many seeds have to find what MUTATION takes out.
const mutants = 200

func TestMutant(t *testing.T) {
	mutation := os.Getenv("MUTATION")
	for seed := range uint64(mutants) {
		p := NewPlan(seed)
		p.ExactlyOnce = true
		if mutation == "fence" {
			p.outcasts()
		}
		if problem := problemOf(t, p); problem != "" {
			t.Logf("MUTATION=%s is found by seed %d: %s", mutation, seed, problem)
			return
		}
	}
	t.Errorf("MUTATION=%s: no seed below %d finds it", mutation, mutants)
}

// TestTracedMutant finds it by the model of the protocol, or by a promise that is broken, with a few small plans.
func TestTracedMutant(t *testing.T) {
	mutation := os.Getenv("MUTATION")
	for seed := range uint64(tracedMutants) {
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

// outcasts leaves of the faults only one: the group can't hear the owner of the lease for longer than a session, and
// gives the lease to the other instance. The first one can't hear what that writes, and continues.
func (p *Plan) outcasts() {
	p.Instances, p.Leases, p.Retention, p.Once = 2, 1, KeepAll, false
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Kind != Append && s.Kind != Next })
	for k := range 8 {
		at := time.Duration(2+3*k) * time.Second
		for _, key := range []kmsg.Key{kmsg.Heartbeat, kmsg.Fetch} {
			p.add(Step{At: at, Kind: Stall, Key: key, Instance: k % 2, For: 2*p.Session + time.Second})
		}
	}
	p.sort()
}
