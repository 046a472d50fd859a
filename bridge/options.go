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

	Feed   *source.Feed
	FeedID string            // identity of the account or directory; a stored state of another feed is rejected
	Frozen map[string]string // settings that must not change while records exist, by name
	// Follows names, for frozen settings that the user left out, the setting that chose their value. May be nil.
	Follows map[string]string
	Topics  *envelope.Topics // of the records
	Shared  bool             // bridges of other feeds may write to them, too
	Events  envelope.EventsMode
	// Encoder makes the encoder of a topic.
	Encoder func(ctx context.Context, topic string) (*envelope.Encoder, error)

	Start history.Start // used once, at the first start
	// InitialScan is used once, too. It and other scans need an Inventory, the account of the feed. A directory has
	// none.
	InitialScan  InitialScan
	Inventory    inventory.Store
	AccountURL   string             // with a slash at its end, for the URLs of blobs
	ScanRequests int                // of an instance at a time
	ScanRound    time.Duration      // how long a scan holds up delivery at a time
	End          envelope.Timestamp // deliver up to it, then stop; zero: no end
	Filter       envelope.Filter    // its times are set from Start and End

	Client        []kgo.Opt // brokers, security, compression
	Transactional bool      // exactly once; at least once otherwise
	TxnTimeout    time.Duration
	EpochHeader   bool          // records and markers name their epoch: where a former owner can write late
	Session       time.Duration // an instance that is silent for longer loses its leases

	TopicsBy          topics.Creator
	TopicPartitions   int32 // of a topic that has to be created
	TopicLimit        int   // of topics that a template makes; 0: none
	AdoptTopics       bool  // also write to topics with records of others, where the template has no literal prefix
	Table             bool  // records make a table: topics are created with cleanup.policy=compact
	Limited           bool  // retention may delete the rows of an initial scan
	TopicReplication  int16 // -1: the broker's default
	OffsetsPartitions int32 // number of leases, fixed when the offsets topic is created
	Partition         partitioner.Func
	Markers           envelope.Markers
	ResolvedSlack     time.Duration

	CommitInterval time.Duration // maximum wait of a record for its commit, see writer.interval
	TxnRecords     int           // records after which a transaction is committed earlier
	TxnBytes       int           // the same in bytes of keys, values and headers
	BundleBytes    int64         // bytes of chunks that are delivered together; 0: each segment by itself
	BundleReaders  int           // segments of a bundle that are listed ahead
	BufferBytes    int           // memory of what all leases have read and not committed; 0: bounded by TxnBytes only
	SweepBytes     int           // memory of the keys that a sweep compares, beside BufferBytes
	PollInterval   time.Duration // between two looks at an open segment, or at a feed without a next one
	QuietInterval  time.Duration // between two listings of an open segment whose time is over; 0: PollInterval
	Shutdown       time.Duration // maximum time of a lease's last commit

	// For one of many bridges in a process.
	Memory *pipeline.Budget // of BufferBytes, shared by the bridges; nil: not shared
	Claims *catalog.Claims  // of all bridges on the brokers; nil: read for this bridge alone
	Frugal bool             // few requests while nothing happens

	ToolFlags string // with which commands of Kafka's tools reach the brokers, for hints

	DeadLetter string // topic of what cannot become a record; "": the shard stays at it, and reports it
	SkipGaps   bool   // continue at the oldest segment where retention has removed what was to be read
	RescanGaps bool   // and repair the topics by a scan
	Once       bool   // deliver what the feed holds now, then return
	Observer   Observers
	Log        *slog.Logger
	Now        func() time.Time // nil: time.Now

	Trace func(offsets.Event) // hears what the leases do, for tests; nil: nobody does
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
	case o.RescanGaps:
		is = topics.Repaired
	case o.scansFirst() && !o.Limited:
		is = topics.Scanned
	}
	return topics.Plan{
		By: o.TopicsBy, Partitions: o.TopicPartitions, Replication: o.TopicReplication, Atomic: o.Transactional,
		Inline: o.Markers == envelope.MarkersInline, Beside: o.Markers == envelope.MarkersTopic,
		Table: o.Table, Copy: is, Limit: o.TopicLimit, Flags: o.ToolFlags,
	}
}

// scansFirst reports whether the first start lists the account.
func (o *Options) scansFirst() bool { return o.InitialScan == ScanYes || o.InitialScan == ScanOnly }

// SettingsError says that another attempt does not help, since settings do not fit.
type SettingsError = plain.SettingsError

// Stored returns what a stored state must fit.
func (o *Options) Stored() *frozen.Settings {
	return &frozen.Settings{
		Bridge: o.Name, Feed: o.FeedID, Values: o.Frozen, Follows: o.Follows, Scan: string(o.InitialScan),
	}
}

// Catalog says what the bridge does with topics.
func (o *Options) Catalog() catalog.Options {
	return catalog.Options{
		Bridge: o.Name, Feed: o.FeedID, Names: o.Topics, Template: o.Frozen[offsets.FrozenTopic], Shared: o.Shared,
		Adopt: o.AdoptTopics, DeadLetter: o.DeadLetter, Leases: o.OffsetsPartitions, Plan: o.TopicPlan(),
		Encoder: o.Encoder, Client: o.Client, Claims: o.Claims, Log: o.Log, Now: o.Now,
		Oldest: func(ctx context.Context) (time.Time, bool, error) {
			return history.New(o.Feed, 0).Oldest(ctx, o.Start, o.Now())
		},
	}
}

// marks reports whether markers are written.
func (o *Options) marks() bool { return o.Markers != envelope.MarkersOff }

func (o *Options) end() resolved.End { return resolved.End(o.End) }

func (o *Options) offsetsTopic() string { return plain.StateTopic(o.Name) }

func (o *Options) lease() *offsets.Config {
	var session *offsets.Session
	if !o.Transactional {
		session = offsets.NewSession(o.Session)
	}
	return &offsets.Config{
		Session: session,
		Frugal:  o.Frugal,
		Topic:   o.offsetsTopic(), Name: o.Name, Instance: o.Instance, Transactional: o.Transactional,
		TxnTimeout: o.TxnTimeout, Client: o.Client, Now: o.Now, Trace: o.Trace,
		Waiting: func(what string) {
			o.Log.Warn("still waiting: a transaction is open in the offsets topic, and the brokers have not ended it",
				"wait", what,
				"open_for_more_than", o.TxnTimeout)
		},
	}
}
