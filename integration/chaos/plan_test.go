package chaos

import (
	"slices"
	"testing"
	"time"
)

// A plan follows from its seed, has faults of all kinds, and asks for nothing impossible.
func TestPlan(t *testing.T) {
	if slices.Equal(Plan(1, 50), Plan(2, 50)) {
		t.Error("two seeds, one plan")
	}
	kinds, modes := map[Kind]int{}, map[Mode]int{}
	for seed := range uint64(50) {
		plan := Plan(seed, 400)
		if !slices.Equal(plan, Plan(seed, 400)) || !slices.Equal(plan[:30], Plan(seed, 30)) {
			t.Fatalf("seed %d: another plan the second time", seed)
		}
		running, hurt, down, most := map[int]bool{0: true, 1: true, 2: true, 3: true}, map[int]Fault{}, -1, 0
		last, grown := time.Duration(0), 0
		for _, s := range steps(plan) {
			f := s.fault
			bad := func(why string) { t.Fatalf("seed %d, %s: %v (undo %v): %s", seed, s.at, f, s.undo, why) }
			if s.at < last {
				bad("it comes too late")
			}
			last = s.at
			if !s.undo {
				kinds[f.Kind]++
				if f.Kind == Cut {
					modes[f.Mode]++
				}
			}
			switch f.Kind {
			case Join:
				if running[f.Instance] {
					bad("it runs")
				}
				running[f.Instance] = true
			case Kill, Stop:
				if _, is := hurt[f.Instance]; !running[f.Instance] || is && f.Kind == Stop {
					bad("it does not run, or is hurt")
				}
				delete(running, f.Instance)
			case Pause, Cut, Seek, Retain, Trim:
				if s.undo {
					if hurt[f.Instance] != f {
						bad("it was not hurt so")
					}
					delete(hurt, f.Instance)
					break
				}
				if _, is := hurt[f.Instance]; is || !running[f.Instance] {
					bad("it does not run, or is hurt already")
				}
				hurt[f.Instance] = f
			case Scan, Storm:
			case Grow:
				if grown++; down >= 0 || grown > growths {
					bad("a broker is down, or the topic is large")
				}
			default:
				if s.undo {
					if down != f.Broker {
						bad("another one is down")
					}
					down = -1
					break
				}
				if down >= 0 {
					bad("two brokers down")
				}
				down = f.Broker
			}
			if len(running) < fewest || len(running) > slots {
				bad("the wrong number of instances")
			}
			most = max(most, len(running))
		}
		if most != slots || len(hurt) > 0 || down >= 0 {
			t.Errorf("seed %d: at most %d instances; in the end %v hurt, broker %d down", seed, most, hurt, down)
		}
	}
	for _, w := range weights {
		if kinds[w.kind] == 0 {
			t.Errorf("no %s", w.kind)
		}
	}
	for _, m := range []Mode{Stalled, Deaf, Reset, NoGroup} {
		if modes[m] == 0 {
			t.Errorf("no cut %s", m)
		}
	}
}
