package bridge

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/internal/catalog"
	"blobfeed/internal/frozen"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/partitioner"
	"blobfeed/resolved"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// Options is what a Bridge is made of. All fields are required unless they say otherwise.
type Options struct {
	Name     string // consumer group, prefix of transactional ids and of the offsets topic
	Instance string // unique among live instances

	Feed    Feed
	Records Records
	Topics  Topics
	Kafka   Kafka
	Pace    Pace

	Once     bool // deliver what the feed holds now, then return
	Observer Observers
	Log      *slog.Logger
	Now      func() time.Time    // nil: time.Now
	Trace    func(offsets.Event) // hears what the leases do, for tests; nil: nobody does
}

// Feed is what a bridge reads, and which part of it.
type Feed struct {
	Source *source.Feed
	ID     string             // of the account or directory; a stored state of another feed is rejected
	Start  history.Start      // used once, at the first start
	End    envelope.Timestamp // deliver up to it, then stop; zero: no end
	Filter envelope.Filter    // its times are set from Start and End

	// InitialScan is used once, too. It and other scans need an Inventory, the account of the feed. A directory has
	// none.
	InitialScan InitialScan
	Inventory   inventory.Store
	AccountURL  string // with a slash at its end, for the URLs of blobs

	SkipGaps   bool // continue at the oldest segment where retention has removed what was to be read
	RescanGaps bool // and repair the topics by a scan
}

// Records is what a bridge writes.
type Records struct {
	Events envelope.EventsMode
	// Encoder makes the encoder of a topic.
	Encoder       func(ctx context.Context, topic string) (*envelope.Encoder, error)
	Partition     partitioner.Func
	Markers       envelope.Markers
	ResolvedSlack time.Duration
	EpochHeader   bool // records and markers name their epoch: where a former owner can write late

	Frozen map[string]string // settings that must not change while records exist, by name
	// Follows names, for frozen settings that the user left out, the setting that chose their value. May be nil.
	Follows map[string]string
}

// Topics is where a bridge writes its records.
type Topics struct {
	Names      *envelope.Topics
	Shared     bool   // bridges of other feeds may write to them, too
	Adopt      bool   // also write to topics with records of others, where the template has no literal prefix
	DeadLetter string // topic of what cannot become a record; "": the shard stays at it, and reports it
	Create     topics.Creation
	Limited    bool // retention may delete the rows of an initial scan

	Claims *catalog.Claims // of all bridges on the brokers, for one of many in a process; nil: read for this one alone
}

// Kafka is how a bridge reaches the brokers, and what it asks of them.
type Kafka struct {
	Client        []kgo.Opt // brokers, security, compression
	Transactional bool      // exactly once; at least once otherwise
	TxnTimeout    time.Duration
	Session       time.Duration // an instance that is silent for longer loses its leases
	Leases        int32         // partitions of the offsets topic, fixed when it is created
}

// Pace is how much a bridge does at a time, and how often.
type Pace struct {
	CommitInterval time.Duration // maximum wait of a record for its commit, see writer.interval
	TxnRecords     int           // records after which a transaction is committed earlier
	TxnBytes       int           // the same in bytes of keys, values and headers
	BundleBytes    int64         // bytes of chunks that are delivered together; 0: each segment by itself
	BundleReaders  int           // segments of a bundle that are listed ahead
	BufferBytes    int           // memory of what all leases have read and not committed; 0: bounded by TxnBytes only
	SweepBytes     int           // memory of the keys that a sweep compares, beside BufferBytes
	PollInterval   time.Duration // between two looks at an open segment, or at a feed without a next one
	QuietInterval  time.Duration // between two listings of an open segment whose time is over; 0: PollInterval
	ScanRequests   int           // of an instance at a time
	ScanRound      time.Duration // how long a scan holds up delivery at a time
	Shutdown       time.Duration // maximum time of a lease's last commit

	// For one of many bridges in a process.
	Memory *pipeline.Budget // of BufferBytes, shared by the bridges; nil: not shared
	Frugal bool             // few requests while nothing happens
}

// InitialScan says whether the first start lists the account.
type InitialScan string

// The values are CockroachDB's.
const (
	NoScan   InitialScan = "no"
	ScanYes  InitialScan = "yes"  // and then delivers the feed
	ScanOnly InitialScan = "only" // and then ends
)

// TopicPlan says what the topics of the bridge hold.
func (o *Options) TopicPlan() topics.Plan {
	is := topics.NoCopy
	switch {
	case o.Feed.RescanGaps:
		is = topics.Repaired
	case o.Feed.scansFirst() && !o.Topics.Limited:
		is = topics.Scanned
	}
	return topics.Plan{
		Creation: o.Topics.Create, Atomic: o.Kafka.Transactional, Copy: is,
		Inline: o.Records.Markers == envelope.MarkersInline, Beside: o.Records.Markers == envelope.MarkersTopic,
	}
}

// scansFirst reports whether the first start lists the account.
func (f *Feed) scansFirst() bool { return f.InitialScan == ScanYes || f.InitialScan == ScanOnly }

// Stored returns what a stored state must fit.
func (o *Options) Stored() *frozen.Settings {
	r := &o.Records
	return &frozen.Settings{
		Bridge: o.Name, Feed: o.Feed.ID, Values: r.Frozen, Follows: r.Follows, Scan: string(o.Feed.InitialScan),
	}
}

// Catalog says what the bridge does with topics.
func (o *Options) Catalog() catalog.Options {
	return catalog.Options{
		Bridge: o.Name, Feed: o.Feed.ID, Template: o.Records.Frozen[offsets.FrozenTopic], Encoder: o.Records.Encoder,
		Names: o.Topics.Names, Shared: o.Topics.Shared, Adopt: o.Topics.Adopt, DeadLetter: o.Topics.DeadLetter,
		Claims: o.Topics.Claims, Plan: o.TopicPlan(), Client: o.Kafka.Client, Leases: o.Kafka.Leases, Log: o.Log,
		Now: o.Now,
		Oldest: func(ctx context.Context) (time.Time, bool, error) {
			return history.New(o.Feed.Source, 0).Oldest(ctx, o.Feed.Start, o.Now())
		},
	}
}

// marks reports whether markers are written.
func (o *Options) marks() bool { return o.Records.Markers != envelope.MarkersOff }

func (o *Options) end() resolved.End { return resolved.End(o.Feed.End) }

func (o *Options) lease() *offsets.Config {
	var session *offsets.Session
	if !o.Kafka.Transactional {
		session = offsets.NewSession(o.Kafka.Session)
	}
	return &offsets.Config{
		Session: session, Frugal: o.Pace.Frugal,
		Topic: plain.StateTopic(o.Name), Name: o.Name, Instance: o.Instance, Transactional: o.Kafka.Transactional,
		TxnTimeout: o.Kafka.TxnTimeout, Client: o.Kafka.Client, Now: o.Now, Trace: o.Trace,
		Waiting: func(what string) {
			o.Log.Warn("still waiting: a transaction is open in the offsets topic, and the brokers have not ended it",
				"wait", what, "open_for_more_than", o.Kafka.TxnTimeout)
		},
	}
}
