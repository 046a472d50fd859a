package simulation

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/offsets"
	"blobfeed/source"
)

const firstPort = 9092

// world is everything in a bubble.
type world struct {
	plan    *Plan
	log     func(string)
	net     *kfake.VirtualNetwork
	cluster *kfake.Cluster
	admin   *kadm.Client
	blobs   *blobs
	feed    *feedsim.Feed
	judge   *judge
	storage *storage // of a plan with scans
	whole   *whole
	tracer  *tracer // of a plan that is traced
	began   time.Time
	links   int

	mu        sync.Mutex
	slots     []*instance
	starting  map[int]bool // slots
	starts    int
	closing   bool
	barred    bool                     // the operator lets no instance start
	gapped    bool                     // an instance ended because history was lost
	owed      bool                     // and by what was committed then, it was
	retired   source.Segment           // the newest of which retention has removed something
	lossy     bool                     // retention has removed what may not have been delivered
	moved     bool                     // by a seek or reset: what was delivered may be due again
	outcast   atomic.Pointer[instance] // paused behind a reset
	completed source.Segment
	due       []time.Duration // damages to come: when each heals; 0: a seek will go past it
	wounds    []*wound        // that do not heal
	faults    []*kfake.FaultHandle
	failures  []string
	peak      int
}

func newWorld(p *Plan, log func(string)) (*world, error) {
	w := &world{plan: p, log: log, whole: newWhole(), net: &kfake.VirtualNetwork{}, began: time.Now(),
		slots: make([]*instance, p.Instances), starting: map[int]bool{}}
	var ports []int
	for i := range p.Brokers {
		ports = append(ports, firstPort+i)
	}
	opts := []kfake.Opt{kfake.ListenFn(w.net.Listen), kfake.Ports(ports...), kfake.GroupMinSessionTimeout(time.Second)}
	if p.Classic {
		opts = append(opts, kfake.MaxVersions(kversion.FromString("3.6")))
	}
	var err error
	if w.cluster, err = kfake.NewCluster(opts...); err != nil {
		return nil, err
	}
	w.cluster.ControlKey(int16(kmsg.OffsetForLeaderEpoch), w.nothingLost)
	if p.Traced {
		w.tracer = newTracer(w)
	}
	clean := newLink(w.net.DialContext, func(int, int) time.Duration { return 0 })
	if w.judge, err = newJudge(w, clean); err != nil {
		return nil, err
	}
	w.admin = kadm.NewClient(w.judge.cl)
	if p.Scans {
		var traced *scanTracer
		if w.tracer != nil {
			traced = w.tracer.scan
		}
		w.storage = newStorage(p, traced)
	}
	w.blobs = &blobs{data: map[string][]byte{}, written: w.written, pace: func() { time.Sleep(time.Millisecond) }}
	w.feed, err = feedsim.New(w.blobs, feedsim.Spec{
		Seed: p.Seed, Shards: p.Shards, Blobs: p.Blobs, BlockEvents: p.BlockEvents, EventsPerSegment: 4000,
		LateShards: p.LateShards, EmptyShards: min(p.EmptyShards, p.Shards-1), TornAppends: p.Torn, HotShare: 0.3,
		TwiceEvery: p.TwiceEvery,
		Containers: []string{"photos", "backups", "$web", "one", "two", "three", "four", "rare"},
	})
	return w, err
}

// nothingLost answers how far an epoch of a leader reaches: kfake says of one that has written nothing yet that records
// were lost.
func (w *world) nothingLost(req kmsg.Request) (kmsg.Response, error, bool) {
	w.cluster.KeepControl()
	resp := req.ResponseKind().(*kmsg.OffsetForLeaderEpochResponse)
	resp.SetVersion(req.GetVersion())
	for _, rt := range req.(*kmsg.OffsetForLeaderEpochRequest).Topics {
		topic := kmsg.NewOffsetForLeaderEpochResponseTopic()
		topic.Topic = rt.Topic
		for _, rp := range rt.Partitions {
			p := kmsg.NewOffsetForLeaderEpochResponseTopicPartition()
			p.Partition, p.LeaderEpoch, p.EndOffset = rp.Partition, rp.LeaderEpoch, math.MaxInt64
			topic.Partitions = append(topic.Partitions, p)
		}
		resp.Topics = append(resp.Topics, topic)
	}
	return resp, nil, true
}

// latency returns how long the requests of a link take.
func (p *Plan) latency(link int) func(connection, request int) time.Duration {
	return func(connection, request int) time.Duration {
		h := fnv.New64a()
		fmt.Fprint(h, p.Seed, link, connection, request)
		return time.Duration(h.Sum64() % uint64(p.Latency+1))
	}
}

// now is the feed's time.
func (w *world) now() time.Time { return feedStart.Add(time.Since(w.began) * feedSpeed) }

var feedStart = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)

// feedSpeed is about how many times faster than the virtual clock the feed's segments come.
const feedSpeed = 300

func (w *world) logf(format string, args ...any) {
	w.log(fmt.Sprintf("%9.3f ", time.Since(w.began).Seconds()) + fmt.Sprintf(format, args...))
}

func (w *world) fail(format string, args ...any) {
	w.logf("FAILURE: "+format, args...)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.failures = append(w.failures, fmt.Sprintf(format, args...))
}

// held checks how much a lease has read and not committed (I9). The bound is loose: what waits for the budget was read,
// too, so was what is in the reader's window, and records are larger than the bytes they are of. With a filter or an
// end it says nothing: what is left out was read, and is not held. Behind a seek neither: who lost a lease by it drops
// what it had read.
func (w *world) held(i *instance, lease int32, bytes int) {
	p := w.plan
	w.mu.Lock()
	w.peak = max(w.peak, bytes)
	moved := w.moved
	w.mu.Unlock()
	window := int(p.ReadSize)
	if p.Buffer == 0 || window == 0 || len(p.Containers) > 0 || !p.End.IsZero() || moved {
		return
	}
	if limit := 3*p.Buffer + 2*int(p.Bundle) + (p.Shards+1)*(window+40000); bytes > limit {
		w.fail("%s: lease %d has read %d bytes and committed nothing; the bound is %d", i.name, lease, bytes, limit)
	}
}

// run starts the instance of a slot.
func (w *world) run(slot int) {
	w.mu.Lock()
	runs := w.slots[slot] != nil && !w.slots[slot].ended()
	if w.closing || w.barred || w.gapped || runs || w.starting[slot] {
		w.mu.Unlock()
		return
	}
	w.starting[slot] = true // two faults may end one instance, and each starts the next one
	w.starts++
	called := fmt.Sprintf("i%d", slot)
	if !w.plan.Restarts {
		called += fmt.Sprintf(".%d", w.starts)
	}
	w.mu.Unlock()
	i := w.start(slot, called, false)
	w.mu.Lock()
	w.slots[slot] = i
	delete(w.starting, slot)
	w.mu.Unlock()
	go w.watch(i)
}

// watch starts an instance again that ended by itself, as an orchestrator does.
func (w *world) watch(i *instance) {
	<-i.done
	i.mu.Lock()
	wanted := i.wanted
	i.mu.Unlock()
	if !wanted {
		if i.err != nil && !i.gap() {
			w.logf("%s was stopped, and says: %v", i.name, i.err)
		}
		return
	}
	w.mu.Lock()
	lossy := w.lossy
	said := i.gap() && lossy && !w.plan.SkipGaps
	w.gapped = w.gapped || said
	gapped := w.gapped
	w.mu.Unlock()
	if said {
		if s := w.state(); s != nil && s.Frontier != nil {
			w.mu.Lock()
			w.owed = w.owed || w.owes(s)
			w.mu.Unlock()
		}
	}
	if gapped || i.err == nil && !w.plan.End.IsZero() && w.ended() {
		return
	}
	w.fail("%s ended by itself: %v", i.name, i.err)
	time.Sleep(2 * time.Second)
	w.run(i.slot)
}

func (w *world) setBarred(barred bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.barred = barred
}

func (w *world) at(slot int) *instance {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.slots[slot]
}

// live returns the instances that run.
func (w *world) live() (all []*instance) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, i := range w.slots {
		if i != nil && !i.ended() {
			all = append(all, i)
		}
	}
	return all
}

// state returns what is committed; nil if it can't be read.
func (w *world) state() *offsets.State {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	topic := plain.StateTopic(name)
	listed, err := w.admin.ListCommittedOffsets(ctx, topic)
	if err = errors.Join(err, listed.Error()); err != nil {
		w.logf("the judge lists the ends of %s: %v", topic, err)
		return nil
	}
	ends := make([]int64, len(listed[topic]))
	for p := range ends {
		ends[p] = listed[topic][int32(p)].Offset
	}
	s, err := offsets.ReadTo(ctx, topic, ends, w.judge.opts...)
	if err != nil {
		w.logf("the judge reads %s: %v", topic, err)
		return nil
	}
	return s
}

// frontier returns the one that is committed; nil if there is none, or it can't be read.
func (w *world) frontier() *offsets.Frontier {
	if s := w.state(); s != nil {
		return s.Frontier
	}
	return nil
}

// ended reports whether everything up to the plan's end is delivered, by what is committed.
func (w *world) ended() bool {
	for range 10 { // brokers may be without a leader
		if w.frontier().Over() {
			return true
		}
		time.Sleep(time.Second)
	}
	return false
}

// mend ends everything that is wrong.
func (w *world) mend() {
	w.mu.Lock()
	for _, f := range w.faults {
		f.Remove()
	}
	w.mu.Unlock()
	for _, i := range w.live() {
		i.mend()
	}
}

var errFailing = errors.New("503 Server Busy")
