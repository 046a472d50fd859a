package simulation

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/envelope"
)

// Plan is what a seed means.
type Plan struct {
	Seed   uint64
	Traced bool // what the bridge does is compared with the model

	Brokers, Instances, Leases, Partitions int
	Classic                                bool // brokers without transaction version 2
	Restarts                               bool // the group's members keep their names over a restart
	FetchBytes                             int32

	ExactlyOnce bool
	Markers     envelope.Markers
	ByContainer bool // a topic for each container
	SkipGaps    bool
	Scans       bool // the feed is that of an account, which is listed
	InitialScan bool
	Repair      bool          // in the end, a scan with a sweep: events were left out, or blobs have vanished
	Head        time.Duration // of a HEAD request, at most, until the faults are over
	DeadLetters bool
	Containers  []string // of the filter; none: all
	Bundle      int64
	Buffer      int // bytes of records that an instance may hold; 0: no bound
	TxnRecords  int
	ReadSize    int64
	Session     time.Duration
	TxnTimeout  time.Duration

	Shards, Blobs, BlockEvents int
	Backlog                    int // segments before the first start
	LateShards, EmptyShards    int
	EmptyEvery, TwiceEvery     int
	Torn                       bool
	Retention                  Retention

	Latency time.Duration // of a request, at most
	Steps   []Step        // by time
	Once    bool          // in the end, two overlapping runs with --once
	End     time.Time     // deliver up to it, then end; zero: no end

	busy []time.Duration // when faults are to be more likely
}

// Retention is what the account's retention may remove.
type Retention int

const (
	KeepAll    Retention = iota
	Delivered            // segments before the last one that is complete
	EatsUnread           // also what was not delivered
)

func (p *Plan) String() string {
	steps := p.Steps
	p.Steps = nil
	text := strings.ReplaceAll(fmt.Sprintf("%+v", *p), " Steps:[]", "")
	p.Steps = steps
	for _, s := range steps {
		text += "\n  " + s.String()
	}
	return text
}

// NewPlan returns the plan of a seed.
func NewPlan(seed uint64) *Plan {
	d := dice{rand.New(rand.NewPCG(seed, 0x5eed))}
	p := &Plan{
		Seed: seed, Brokers: 1 + d.n(3), Instances: 1 + d.n(4), Leases: 1 + d.n(5), Partitions: 1 + d.n(4),
		Classic: d.chance(25), Restarts: d.chance(50), ExactlyOnce: d.chance(80),
		SkipGaps: d.chance(50), DeadLetters: d.chance(50), TxnRecords: 20 + d.n(200),
		Session: 3 * time.Second, TxnTimeout: d.between(4*time.Second, 12*time.Second),
		Shards: 1 + d.n(5), Blobs: 10 + d.n(90), BlockEvents: 2 + d.n(12), Backlog: d.n(8),
		Torn: d.chance(20), Latency: d.between(0, 20*time.Millisecond), Once: d.chance(25),
	}
	switch d.n(20) {
	case 0:
		p.Markers = envelope.MarkersOff
	case 1, 2, 3, 4, 5:
		p.Markers = envelope.MarkersTopic
	}
	if d.chance(40) {
		p.FetchBytes = int32(400 + d.n(4000)) // a view that reads the state record by record
	}
	if d.chance(50) {
		p.Bundle = int64(2000 + d.n(40000))
	}
	if d.chance(40) {
		p.Buffer = 128<<10 + d.n(256<<10) // a block of the feed takes a quarter at most
	}
	if d.chance(50) {
		p.ReadSize = int64(1000 + d.n(20000))
	}
	if d.chance(30) {
		p.Containers = []string{[]string{"backups", "rare"}[d.n(2)]}
	}
	p.ByContainer = d.chance(20)
	if d.chance(20) && p.Shards > 1 {
		p.LateShards = 1
	}
	if d.chance(20) {
		p.EmptyShards = d.n(2)
	}
	if d.chance(15) {
		p.EmptyEvery = 2 + d.n(3)
	}
	switch d.n(10) {
	case 0, 1, 2, 3:
		p.Retention = Delivered
	case 4, 5:
		p.Retention = EatsUnread
	}
	end := p.grow(d)
	if p.Buffer > 0 && p.ReadSize > 0 && d.chance(30) {
		p.flood(d, end)
	}
	if d.chance(10) {
		p.finish(d)
	}
	p.faults(d, end)
	p.sort()
	if d.chance(30) {
		p.TwiceEvery = 1 + d.n(30)
	}
	return p
}

// NewScanPlan returns the plan of a seed in which the account is listed.
func NewScanPlan(seed uint64) *Plan {
	p := NewPlan(seed)
	d := dice{rand.New(rand.NewPCG(seed, 0x5ca9))}
	p.Scans, p.InitialScan, p.SkipGaps = true, d.chance(70) || p.Retention == EatsUnread, true
	if len(p.Containers) > 0 {
		p.Containers = []string{"c1"}
	}
	p.Steps = slices.DeleteFunc(p.Steps, func(s Step) bool {
		// The start behind a reset is refused: no sweep can follow an initial scan into topics that nobody lists.
		return s.Kind == Reset && p.InitialScan && p.ByContainer
	})
	p.Repair = p.End.IsZero() && slices.ContainsFunc(p.Steps, func(s Step) bool {
		return s.Kind == Seek || s.Kind == Reset || s.Kind == Damage
	})
	end := time.Second
	if n := len(p.Steps); n > 0 {
		end = p.Steps[n-1].At
	}
	for range d.n(5) {
		p.add(Step{At: d.between(0, end), Kind: Scan, Instance: -1, N: d.n(10)})
	}
	if p.End.IsZero() && d.chance(25) {
		p.contest(d, end)
	}
	p.sort()
	return p
}

// contest plans deletions that the feed has lost, and a sweep of many rounds that finds them. Meanwhile the group hears
// no heartbeats of an instance, and gives its leases to others. Nothing else of the instance is cut off: an instance
// that is fenced takes its leases back.
func (p *Plan) contest(d dice, end time.Duration) {
	p.Repair, p.Instances, p.Containers = true, max(p.Instances, 2), nil
	p.Head = d.between(500*time.Millisecond, 4*time.Second)
	at := d.between(end*2/3, end+5*time.Second)
	p.add(Step{At: at + 30*time.Second, Kind: Append, N: 10}) // nothing is mended before
	p.add(Step{At: at, Kind: Vanish, Instance: -1, N: 40 + d.n(80)})
	at += d.between(0, 2*time.Second)
	p.add(Step{At: at, Kind: Scan, Instance: -1, N: sweeping})
	for k := range 1 + d.n(3) {
		s := Step{At: at + time.Duration(2*k)*p.Session, Kind: Stall, Key: kmsg.Heartbeat, Instance: d.n(p.Instances)}
		s.At = max(0, s.At+d.between(-p.Session, p.Session))
		s.For = d.between(4*p.Session, 8*p.Session)
		p.add(s)
	}
}

func (p *Plan) sort() {
	slices.SortStableFunc(p.Steps, func(a, b Step) int { return cmp.Compare(a.At, b.At) })
}

// grow plans the feed, and returns when it ends.
func (p *Plan) grow(d dice) time.Duration {
	at := d.between(0, 2*time.Second)
	for range 3 + d.n(4) {
		for range 1 + d.n(4) {
			n := 1 + d.n(40)
			if d.chance(4) {
				n *= 20
			}
			p.add(Step{At: at, Kind: Append, N: n})
			at += d.between(100*time.Millisecond, 4*time.Second)
			if d.chance(15) {
				p.add(Step{At: at, Kind: Roll})
			}
			if d.chance(10) {
				p.add(Step{At: at, Kind: Reveal})
			}
			if p.Retention != KeepAll && d.chance(50) {
				p.add(Step{At: at, Kind: Remove, N: 1 + d.n(8)})
			}
		}
		p.add(Step{At: at, Kind: Next})
		at += d.between(100*time.Millisecond, 3*time.Second)
		if d.chance(15) {
			p.add(Step{At: at, Kind: Burst, N: 2 + d.n(6)})
			p.busy = append(p.busy, at)
		}
	}
	return at
}

// flood plans more events at once than an instance may hold.
func (p *Plan) flood(d dice, end time.Duration) {
	p.Containers = nil
	p.add(Step{At: d.between(0, end), Kind: Append, N: 1500 + d.n(1500)})
}

// finish plans an end in one of the segments.
func (p *Plan) finish(d dice) {
	segments := p.Backlog
	for _, s := range p.Steps {
		switch s.Kind {
		case Next:
			segments++
		case Burst:
			segments += s.N
		}
	}
	p.End = feedStart.Add(time.Duration(1+d.n(segments-1))*time.Hour + d.between(0, time.Hour))
	p.Once = false
}

// faults plans what goes wrong until the end.
func (p *Plan) faults(d dice, end time.Duration) {
	kinds := []Kind{
		Pause, Pause, Kill, Kill, Stop, Cut, Deaf, Lose, Lose, Late, Stall, Stall, Stall, Slow, Fail,
		Refuse, Refuse, Refuse, Shuffle, Compact,
	}
	if !p.Torn { // else an append does not begin with a block
		kinds = append(kinds, Damage)
	}
	if d.chance(30) && p.seeks() {
		kinds = append(kinds, Seek, Seek, Seek)
	}
	if d.chance(20) {
		kinds = append(kinds, Grow)
	}
	if d.chance(15) && p.End.IsZero() {
		kinds = append(kinds, Reset, Reset)
	}
	once := map[Kind]bool{Grow: true, Reset: true}
	if d.chance(25) && p.seeks() && !p.DeadLetters && !p.Torn {
		p.rescue(d)
	}
	p.busy = append(p.busy, 0)
	for range d.n(20) {
		s := Step{At: d.between(0, end), Kind: kinds[d.n(len(kinds))], Instance: -1}
		if d.chance(30) {
			s.At = p.busy[d.n(len(p.busy))] + d.between(0, 2*time.Second)
		}
		if once[s.Kind] {
			kinds = slices.DeleteFunc(kinds, func(k Kind) bool { return k == s.Kind })
		}
		switch s.Kind {
		case Pause:
			s.For = d.between(200*time.Millisecond, 15*time.Second)
		case Kill, Stop:
			s.For = d.between(0, 10*time.Second)
		case Cut, Deaf:
			s.For = d.between(200*time.Millisecond, 12*time.Second)
		case Slow, Fail:
			s.For = d.between(100*time.Millisecond, 8*time.Second)
		case Lose, Late:
			s.N, s.Key, s.For = 1+d.n(3), lossy[d.n(len(lossy))], d.between(100*time.Millisecond, 9*time.Second)
		case Stall:
			s.Key, s.For = stalled[d.n(len(stalled))], d.between(100*time.Millisecond, 12*time.Second)
		case Refuse:
			r := refusals[d.n(len(refusals))]
			s.Key, s.Err, s.N = r.key, r.errs[d.n(len(r.errs))], 1+d.n(4)
		case Grow:
			s.N = 1 + d.n(3)
		case Damage:
			s.For = d.between(time.Second, 6*time.Second)
		case Seek, Reset:
			s.N = d.n(100) // where to
		}
		if slices.Contains([]Kind{Pause, Kill, Stop, Cut, Deaf, Lose, Late, Stall, Slow, Fail}, s.Kind) {
			s.Instance = d.n(p.Instances)
		}
		p.add(s)
	}
}

// seeks reports whether the judge can tell a seek: its marker has to be among the records.
func (p *Plan) seeks() bool {
	return p.ExactlyOnce && p.Markers == envelope.MarkersInline && p.End.IsZero()
}

// rescue plans damage that stays, and a seek past it.
func (p *Plan) rescue(d dice) {
	var nexts []time.Duration
	for _, s := range p.Steps {
		if s.Kind == Next {
			nexts = append(nexts, s.At)
		}
	}
	k := d.n(len(nexts) - 2)
	p.add(Step{At: max(0, nexts[k]-3*time.Second), Kind: Damage, Instance: -1})
	p.add(Step{At: nexts[k+2] + d.between(0, 5*time.Second), Kind: Seek, Instance: -1, N: latest})
}

// latest is the newest segment, for a seek.
const latest = 100

func (p *Plan) add(s Step) {
	switch s.Kind {
	case Append, Burst, Next, Reveal, Roll, Remove:
		s.Instance = -1
	}
	p.Steps = append(p.Steps, s)
}

// dice are thrown in the order of the plan.
type dice struct{ *rand.Rand }

func (d dice) n(n int) int { return d.IntN(n) }

func (d dice) chance(percent int) bool { return d.IntN(100) < percent }

func (d dice) between(from, to time.Duration) time.Duration {
	return from + time.Duration(d.Int64N(int64(to-from)))
}
