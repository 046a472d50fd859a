package catalog

import (
	"context"
	"errors"
	"log/slog"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Options are what a bridge says of its topics.
type Options struct {
	Bridge   string           // its name
	Feed     string           // identity of what it reads
	Names    *envelope.Topics // of records
	Template string           // from which they are made
	Shared   bool             // bridges of other feeds may write to them, too
	Adopt    bool             // also write to topics with records of others, where the template has no literal prefix
	// DeadLetter is the topic of what cannot become a record, "" if there is none.
	DeadLetter string
	Leases     int32       // partitions of the state's topic, if it has to be created
	Plan       topics.Plan // of what the topics hold
	// Encoder makes the encoder of a topic.
	Encoder func(ctx context.Context, topic string) (*envelope.Encoder, error)
	// Oldest returns the time of the first event that a first start reads, if there is one.
	Oldest func(context.Context) (at time.Time, ok bool, err error)

	Client []kgo.Opt
	Claims *Claims // of all bridges on the brokers
	Log    *slog.Logger
	Now    func() time.Time
}

func (o *Options) state() string { return plain.StateTopic(o.Bridge) }

// Constant returns the topic of all records, if there is one.
func (o *Options) Constant() []string {
	if topic, ok := o.Names.Constant(); ok {
		return []string{topic}
	}
	return nil
}

// Catalog is what an instance knows of its topics. It is safe for concurrent use.
type Catalog struct {
	Options
	Admin *topics.Admin

	opened   sync.Map   // the topics that this instance has opened -> Frontier.Born
	admitted sync.Map   // the new topics that it may open -> Frontier.Born
	creating pause.Turn // of the leases, to create topics
	openings *cache[opening]
	limits   *cache[int32] // of the topic of the state
	// encoders are made when a topic is first written to. With Avro that needs the registry: if it is down, only the
	// topics without an encoder have to wait.
	encoders *cache[*envelope.Encoder]
	sole     atomic.Bool // the topic of all records is used, and by no other bridge: see StillSole
}

// opening is what the brokers say of a topic that is opened.
type opening struct{ partitions, limit int32 }

const (
	// openingHolds is how long the leases of an instance share an opening: their shards meet the same new containers.
	// The count of partitions does not get old by it: once a record is committed, its lease has pinned the count.
	openingHolds = time.Minute
	// limitHolds is how long they share the limit of the state. It is short, since operators raise the limit while a
	// bridge waits for it.
	limitHolds = time.Second
)

// New returns a catalog that knows nothing yet.
func New(o Options, cl *kgo.Client) *Catalog {
	c := &Catalog{
		Options: o, creating: pause.NewTurn(), encoders: newCache(o.Encoder, 0),
		Admin: &topics.Admin{Plan: o.Plan, Client: cl, Now: o.Now, Log: o.Log, Oldest: o.Oldest},
	}
	c.openings = newCache(c.open, openingHolds)
	c.limits = newCache(func(ctx context.Context, topic string) (int32, error) {
		return c.Admin.MaxMessage(ctx, topic)
	}, limitHolds)
	return c
}

// Prepare creates the topics if it may, and rejects those that can't hold what is to be written. Once there is a
// frontier, it creates none in place of a topic of records that is gone: its records are.
func (c *Catalog) Prepare(ctx context.Context, f *offsets.Frontier) error {
	for _, own := range []string{c.state(), c.DeadLetter} {
		if err := c.Names.Apart(own); err != nil {
			return plain.SettingsErrorf("BRIDGE_TOPIC: %v", err)
		}
	}
	if f == nil {
		if err := c.Missing(ctx); err != nil {
			return err
		}
	}
	if c.DeadLetter != "" {
		if err := c.Admin.OpenDeadLetters(ctx, c.DeadLetter); err != nil {
			return err
		}
	}
	if f != nil {
		var oldest time.Time
		if at := f.At(); at != (source.Segment{}) {
			oldest = at.Time()
		}
		return asSettings(c.Admin.Fit(ctx, f.Topics, oldest))
	}
	for _, topic := range c.Constant() {
		if _, err := c.open(ctx, topic); err != nil {
			return err
		}
	}
	return nil
}

// Missing returns an error if topics of a first start are missing, and the bridge may not create them.
func (c *Catalog) Missing(ctx context.Context) error {
	all := []topics.Topic{{Kind: topics.State, Name: c.state(), Partitions: c.Leases}}
	for _, name := range c.Constant() {
		all = append(all, topics.Topic{Kind: topics.Records, Name: name, Partitions: c.Plan.Partitions})
		if c.Plan.Beside {
			markers := plain.MarkerTopic(name)
			all = append(all, topics.Topic{Kind: topics.Markers, Name: markers, Partitions: c.Plan.Partitions})
		}
	}
	if c.DeadLetter != "" {
		all = append(all, topics.Topic{Kind: topics.DeadLetters, Name: c.DeadLetter, Partitions: 1})
	}
	return c.Admin.Missing(ctx, all...)
}

// open makes sure that a topic of records exists and fits.
func (c *Catalog) open(ctx context.Context, topic string) (o opening, err error) {
	o.partitions, o.limit, err = c.Admin.Open(ctx, topic)
	return o, asSettings(err)
}

// asSettings returns a topic that must stop the bridge as an error of the settings.
func asSettings(err error) error {
	if problem, is := errors.AsType[*topics.Problem](err); is && problem.Severity == topics.Unfit {
		return &plain.SettingsError{Problem: problem.Error()}
	}
	return err
}

// Encoder returns the encoder of a topic.
func (c *Catalog) Encoder(ctx context.Context, topic string) (*envelope.Encoder, error) {
	return c.encoders.get(ctx, topic)
}

// Written returns the topics that are written to, but for that of the state.
func (c *Catalog) Written(f *offsets.Frontier) []string {
	names := c.Constant()
	if c.DeadLetter != "" {
		names = append(names, c.DeadLetter)
	}
	for topic, born := range c.opened.Range {
		if f != nil && born == f.Born {
			names = append(names, topic.(string))
		}
	}
	if f != nil {
		names = slices.AppendSeq(names, maps.Keys(f.Topics))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// stateLimit returns how large a document of the state may be. Each new topic asks.
func (c *Catalog) stateLimit(ctx context.Context) (int32, error) { return c.limits.get(ctx, c.state()) }

// transactionLog is the topic in which brokers keep transactions.
const transactionLog = "__transaction_state"

// Unwritable returns which topic takes no records now, nil if all do: brokers that are only slow are no failure.
func (c *Catalog) Unwritable(ctx context.Context, f *offsets.Frontier) error {
	names := append(c.Written(f), c.state())
	if c.Plan.Atomic {
		names = append(names, transactionLog)
	}
	return topics.Unwritable(ctx, kadm.NewClient(c.Admin.Client), true, names...)
}

// Opened returns the partitions to which a lease may have written in a transaction, for topics that it knew with so
// many. They are the former owner's, and not what this instance has opened.
func (c *Catalog) Opened(ctx context.Context, known map[string]int32) (map[string]int32, error) {
	ends := map[string]int32{}
	for topic, partitions := range known {
		ends[topic] = partitions
		if c.Plan.Beside {
			ends[plain.MarkerTopic(topic)] = partitions
		}
	}
	if c.DeadLetter != "" {
		ends[c.DeadLetter] = 1 // where dead letters go
	}
	for topic, partitions := range ends {
		counts, err := topics.Count(ctx, kadm.NewClient(c.Admin.Client), topic)
		if err != nil && !errors.As(err, new(*topics.MissingError)) { // else deleted after a reset
			return nil, err
		}
		ends[topic] = min(partitions, counts[topic])
	}
	return ends, nil
}

// cache makes what belongs to a name when it is first asked for, and keeps it. Those that ask meanwhile wait for it.
// After an error the next one tries again.
type cache[T any] struct {
	make  func(ctx context.Context, name string) (T, error)
	holds time.Duration // how long a value is kept; 0 is without end

	mu sync.Mutex
	of map[string]*cached[T]
}

type cached[T any] struct {
	turn  pause.Turn
	value T         // guarded by turn
	made  time.Time // guarded by turn; zero: not yet
}

func newCache[T any](f func(context.Context, string) (T, error), holds time.Duration) *cache[T] {
	return &cache[T]{make: f, holds: holds, of: map[string]*cached[T]{}}
}

func (c *cache[T]) get(ctx context.Context, name string) (T, error) {
	c.mu.Lock()
	v := c.of[name]
	if v == nil {
		v = &cached[T]{turn: pause.NewTurn()}
		c.of[name] = v
	}
	c.mu.Unlock()
	var none T
	if err := v.turn.Take(ctx); err != nil {
		return none, err
	}
	defer v.turn.Leave()
	if v.made.IsZero() || c.holds > 0 && time.Since(v.made) > c.holds {
		value, err := c.make(ctx, name)
		if err != nil {
			return none, err
		}
		v.value, v.made = value, time.Now()
	}
	return v.value, nil
}
