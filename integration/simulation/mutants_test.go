//go:build synctests

package simulation

import (
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// scenarios are where a mutation does harm, if it does so rarely in all others.
var scenarios = map[string]func(*Plan){
	"fence": (*Plan).outcasts, "early": (*Plan).eaten, "believe": (*Plan).outlived,
}

func mutantPlan(seed uint64, mutation string) *Plan {
	p := NewPlan(seed)
	p.ExactlyOnce = true
	if change := scenarios[mutation]; change != nil {
		change(p)
	}
	return p
}

// eaten has retention remove segments soon after the start, each of which is delivered by itself.
func (p *Plan) eaten() {
	p.Bundle, p.Backlog, p.Retention, p.SkipGaps, p.Once = 0, 8, EatsUnread, true, false
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool { return s.Kind != Append && s.Kind != Next })
	for k := range 10 {
		p.add(Step{At: time.Duration(k) * 300 * time.Millisecond, Kind: Remove, N: 10})
	}
	p.sort()
}

// outlived leaves of the faults only one: the group can't hear one instance, and gives its lease to the other one, which
// delivers what comes. Retention removes that. The first one, which hears nothing of all that, finds it gone.
func (p *Plan) outlived() {
	p.outcasts()
	p.Retention, p.SkipGaps, p.Containers, p.ByContainer = Delivered, false, nil, false
	p.Steps = nil
	p.add(Step{Kind: Append, N: 20})
	for _, key := range []kmsg.Key{kmsg.Heartbeat, kmsg.Fetch} {
		p.add(Step{At: 4 * time.Second, Kind: Stall, Key: key, Instance: 0, For: 8 * p.Session})
	}
	p.add(Step{At: 5 * time.Second, Kind: Slow, Instance: 0, For: 16 * time.Second}) // a look takes 4 s
	p.add(Step{At: 8 * time.Second, Kind: Slow, Instance: 0, For: 40 * time.Millisecond})
	p.add(Step{At: 25 * time.Second, Kind: Append, N: 5})
	for k := range 20 {
		at := 2*p.Session + 1300*time.Millisecond + time.Duration(k)*200*time.Millisecond
		p.add(Step{At: at, Kind: Append, N: 5})
		p.add(Step{At: at, Kind: Next})
		p.add(Step{At: at, Kind: Remove, N: 100})
	}
	p.sort()
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
