package simulation

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
	"blobfeed/internal/testing/protocol"
	kafkatopics "blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/partitioner"
	"blobfeed/source"
)

const (
	name           = "sim"
	topicName      = "changes"
	shutdown       = 4 * time.Second
	commitInterval = 200 * time.Millisecond
	pollInterval   = 300 * time.Millisecond
	storeLatency   = 2 * time.Millisecond
)

var deadLetters = plain.DeadLetterTopic(name)

// instance is one of the bridge.
type instance struct {
	*world
	slot   int
	name   string
	link   *link
	window *window
	bridge *bridge.Bridge
	stop   context.CancelFunc
	kill   context.CancelFunc
	done   chan struct{} // closed when it has ended
	err    error         // then

	mu     sync.Mutex
	pauses int
	wanted bool // it is not to end by itself
	unread map[int32]int
}

// start runs an instance.
func (w *world) start(slot int, called string, once bool) *instance {
	i := &instance{world: w, slot: slot, name: called, done: make(chan struct{}), wanted: true, unread: map[int32]int{}}
	w.links++
	i.link = newLink(w.net.DialContext, w.plan.latency(w.links))
	if !w.plan.ExactlyOnce { // what left before a pause and arrives behind a session is not promised: docs/delivery.md
		i.link.patience = w.plan.Session / 2
	}
	i.window = newWindow(w.blobs, storeLatency, i.read)
	hard, kill := context.WithCancel(context.Background())
	stop, cancel := context.WithCancel(hard)
	i.stop, i.kill = cancel, kill
	o, err := w.options(i)
	if err != nil {
		w.fail("making the options: %v", err)
		close(i.done)
		return i
	}
	o.Once = once
	i.bridge = bridge.New(o)
	w.logf("%s starts", called)
	w.tracer.happens(protocol.Event{Kind: protocol.Starts, Instance: called})
	go func() {
		defer close(i.done)
		i.err = i.bridge.Run(stop, hard)
		w.logf("%s ended: %v", called, i.err)
	}()
	return i
}

func (w *world) options(i *instance) (bridge.Options, error) {
	p := w.plan
	template := topicName
	if p.ByContainer {
		template += "-{container}"
	}
	topics, err := envelope.NewTopics(template, "simaccount")
	if err != nil {
		return bridge.Options{}, err
	}
	client, err := w.client(i.name, i.link)
	if err != nil {
		return bridge.Options{}, err
	}
	events := envelope.EventsAll
	if p.Scans {
		events = envelope.EventsState
	}
	o := bridge.Options{
		Name:     name,
		Instance: i.name,
		Observer: bridge.Observers{i},
		Log:      slog.New(slog.DiscardHandler),
		Now:      w.now,
		Trace:    func(e offsets.Event) { w.heard(i.name, e) },
		Feed: bridge.Feed{
			Source: source.New(i.window, source.Options{ReadSize: p.ReadSize}), ID: "simaccount",
			Filter: envelope.Filter{Containers: p.Containers}, SkipGaps: p.SkipGaps,
		},
		Records: bridge.Records{
			Frozen: map[string]string{"BRIDGE_TOPIC": template}, Events: events,
			Encoder: func(_ context.Context, topic string) (*envelope.Encoder, error) {
				e := envelope.Options{Events: events, Updated: true, KeyInValue: true, Topic: topic,
					Markers: p.Markers}
				return envelope.NewEncoder(e)
			},
			Partition: partitioner.Murmur2, Markers: p.Markers, ResolvedSlack: 15 * time.Minute,
		},
		Topics: bridge.Topics{
			Names: topics, Create: kafkatopics.Creation{Partitions: int32(p.Partitions), Replication: 1},
		},
		Kafka: bridge.Kafka{
			Client: client, Transactional: p.ExactlyOnce, TxnTimeout: w.timeout(i.name), Session: p.Session,
			Leases: int32(p.Leases),
		},
		Pace: bridge.Pace{
			CommitInterval: commitInterval, TxnRecords: p.TxnRecords, TxnBytes: 1 << 20,
			BundleBytes: p.Bundle, BundleReaders: 3, BufferBytes: p.Buffer, PollInterval: pollInterval,
			QuietInterval: 10 * time.Second, Shutdown: shutdown,
		},
	}
	if !p.End.IsZero() {
		o.Feed.End = envelope.Timestamp{Wall: p.End.UnixNano()}
	}
	if p.Scans {
		o.Feed.Inventory, o.Feed.AccountURL = w.storage.listed(i), "https://simaccount/"
		o.Pace.ScanRequests, o.Pace.ScanRound, o.Feed.RescanGaps = 1+int(p.Seed%4), time.Second, true
		if p.InitialScan {
			o.Feed.InitialScan = bridge.ScanYes
		}
	}
	if p.DeadLetters {
		o.Topics.DeadLetter = deadLetters
	}
	return o, nil
}

// client returns the options of a Kafka client, as the program makes them, on the virtual network.
func (w *world) client(id string, l *link) ([]kgo.Opt, error) {
	brokers := []string{fmt.Sprintf("localhost:%d", firstPort)}
	c := kafka.Client{Brokers: brokers, ID: id, Compression: "none", Buffered: 2 * w.plan.TxnRecords}
	opts, err := c.Options()
	if err != nil {
		return nil, err
	}
	// With each member that joins, kfake waits as long as this again for one that does not. The client's 60 s would
	// not end.
	opts = append(opts, kgo.Dialer(l.dial), kgo.RebalanceTimeout(5*time.Second))
	if w.plan.FetchBytes > 0 {
		opts = append(opts, kgo.FetchMaxPartitionBytes(w.plan.FetchBytes))
	}
	return opts, nil
}

// pause keeps the instance from hearing or saying anything, until resume is called as often.
func (i *instance) pause() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pauses++
	i.link.hold()
	i.window.hold()
}

func (i *instance) resume() {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.pauses--; i.pauses <= 0 {
		i.pauses = 0
		i.link.release()
		i.window.release()
	}
}

// mend ends whatever is wrong around the instance.
func (i *instance) mend() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.pauses = 0
	i.link.mend()
	i.window.release()
	i.window.behave(storeLatency, nil)
}

// let says that the instance may end.
func (i *instance) let() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.wanted = false
}

func (i *instance) ended() bool {
	select {
	case <-i.done:
		return true
	default:
		return false
	}
}

// read notes what a lease has read of its chunks and not committed.
func (i *instance) read(shard string, n int) {
	var s int32
	if _, err := fmt.Sscanf(shard, "%d", &s); err != nil {
		return
	}
	i.mu.Lock()
	defer i.mu.Unlock()
	lease := s % int32(i.plan.Leases)
	i.unread[lease] += n
	i.world.held(i, lease, i.unread[lease])
}

// Committed implements bridge.CommitObserver.
func (i *instance) Committed(c bridge.Commit) {
	i.mu.Lock()
	defer i.mu.Unlock()
	if c.Lease == 0 && i.plan.Bundle > 0 { // a bundle has read for all
		clear(i.unread)
	}
	i.unread[c.Lease] = 0
	i.logf("%s lease %d commits segment %s: read %d, emitted %d, filtered %d, dead %d, late %d",
		i.name, c.Lease, c.Segment, c.Read, c.Emitted, c.Filtered, c.Dead, c.Late)
}

// Completed implements bridge.CompletionObserver.
func (i *instance) Completed(c bridge.Completion) {
	i.logf("%s completes segment %s, resolved %s", i.name, c.Segment, c.Resolved)
}

// Failed implements bridge.FailureObserver.
func (i *instance) Failed(lease int32, err error) {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.unread)
	i.logf("%s lease %d: %.160s", i.name, lease, err.Error())
}

var changes = map[bridge.LeaseChange]string{
	bridge.LeasesAssigned: "assigned", bridge.LeasesReleased: "released", bridge.LeasesLost: "lost",
}

// Leased implements bridge.LeaseObserver.
func (i *instance) Leased(change bridge.LeaseChange, leases []int32) {
	i.mu.Lock()
	defer i.mu.Unlock()
	clear(i.unread)
	i.logf("%s leases %v: %s", i.name, leases, changes[change])
}

// gap reports whether the instance ended because history is lost.
func (i *instance) gap() bool {
	var gap *history.GapError
	return errors.As(i.err, &gap)
}
