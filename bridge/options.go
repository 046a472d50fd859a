package bridge

import (
	"context"
	"log/slog"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/topicname"
	"blobfeed/offsets"
	"blobfeed/partitioner"
	"blobfeed/source"
)

// Options is what a Bridge is made of. All fields are required unless they say otherwise.
type Options struct {
	Name     string // consumer group, prefix of transactional ids and of the offsets topic
	Instance string // unique among live instances

	Feed   *source.Feed
	FeedID string            // identity of the account or directory; a stored state of another feed is refused
	Frozen map[string]string // settings that must not change while records exist, by name
	Topics *envelope.Topics  // of the records
	Shared bool              // bridges of other feeds may write to them, too
	Events envelope.EventsMode
	// Encoder makes the encoder of a topic.
	Encoder func(ctx context.Context, topic string) (*envelope.Encoder, error)

	Start  Start              // used once, at the very first start
	End    envelope.Timestamp // deliver up to it, then stop; zero: no end
	Filter envelope.Filter    // its times are set from Start and End

	Client        []kgo.Opt // brokers, security, compression
	Transactional bool      // exactly once; at least once otherwise
	TxnTimeout    time.Duration
	// records and markers say in which epoch they were written: where a former owner can write late
	EpochHeader bool
	Session     time.Duration // an instance that is silent for so long loses its leases

	TopicPartitions   int32 // of a topic that has to be created; 0 never creates, not even that of the offsets, unless BrokerCreates
	TopicLimit        int   // of topics that a template makes; 0: none
	AdoptTopics       bool  // also write to topics that hold records of others, where the template has no literal prefix
	BrokerCreates     bool  // a missing topic is created by the broker, when it is asked for
	Table             bool  // records make a table: topics are created with cleanup.policy=compact
	TopicReplication  int16 // -1: the broker's default
	OffsetsPartitions int32 // number of leases, fixed when the offsets topic is created
	Partition         partitioner.Func
	Markers           envelope.Markers
	ResolvedSlack     time.Duration

	CommitInterval time.Duration // a record waits no longer than this for its commit
	TxnRecords     int           // commit earlier at so many records
	TxnBytes       int           // or so many bytes of keys, values and headers
	BundleBytes    int64         // small finalized segments are delivered together, up to so many bytes of chunks; 0: each by itself
	BundleReaders  int           // of which so many are listed ahead
	BufferBytes    int           // memory of what all leases have read and not committed; 0: no other bound than TxnBytes
	PollInterval   time.Duration // how often an open segment, or a feed without a next one, is looked at
	QuietInterval  time.Duration // how often the shards of an open segment are listed whose time is over; 0: as often
	Shutdown       time.Duration // how long a lease may take to commit when it has to go

	TopicTool string // begins a command that alters a topic's settings, for hints; "": with a placeholder for a broker

	DeadLetter string // topic of what can't become a record; "": the shard stays at it, and says so
	SkipGaps   bool   // go on at the oldest segment where retention has removed what was to be read
	Once       bool   // deliver what the feed holds now, then return
	Observer   Observer
	Tracer     Tracer // nil: no times are taken
	Log        *slog.Logger
	Now        func() time.Time // nil: time.Now
}

// minTxnInterval keeps transactions from following each other so fast that the broker's wait for the markers of the
// one before (20 ms a broker) is all that happens.
const minTxnInterval = 100 * time.Millisecond

// headroomInterval is how often the oldest segment is looked for: three listings each time.
const headroomInterval = 10 * time.Minute

// newestPolls is how many polls there are between two looks at the newest segment: one small read.
const newestPolls = 4

func (o *Options) offsetsTopic() string { return topicname.State(o.Name) }

func (o *Options) lease() *offsets.Config {
	var session *offsets.Session
	if !o.Transactional {
		session = offsets.NewSession(o.Session)
	}
	return &offsets.Config{
		Session: session,
		Topic:   o.offsetsTopic(), Name: o.Name, Instance: o.Instance, Transactional: o.Transactional,
		TxnTimeout: o.TxnTimeout, Client: o.Client, Now: o.Now,
		Waiting: func(what string) {
			o.Log.Warn("still waiting: a transaction is open in the offsets topic, and the brokers have not ended it",
				"wait", what,
				"open_for_more_than", o.TxnTimeout)
		},
	}
}
