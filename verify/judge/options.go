package judge

import (
	"context"
	"fmt"
	"sync/atomic"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
)

// Options say what to judge, by the settings with which the topics were written.
type Options struct {
	bridge.Options                  // without Feed and FeedID, the feed is not read
	Record         envelope.Options // of records, without topic and account
	Account        string           // storage account, where the settings name one
	// Schema returns a schema of the registry. Nil: no record is in Avro.
	Schema func(ctx context.Context, id int) (string, error)

	ReplayName func(topic string) string // of a replay into a topic

	Topic    string // "": all that the bridge has written to
	ReadFeed bool   // compare the topics with the feed
	// ReadAccount compares the topics with the blobs of the account. Wait is how long the feed may take to explain a
	// difference.
	ReadAccount bool
	Wait        time.Duration

	Bounded bool               // use only validators that keep nothing for each event or key
	Until   envelope.Timestamp // judge up to the first marker at or above it; zero: to the end

	Seen *Seen // what is read so far; nil: nobody asks
}

// Seen counts while a verification works.
type Seen struct{ Events, Records atomic.Int64 }

// unusable returns an error that other settings or flags prevent.
func unusable(format string, args ...any) error {
	return &bridge.SettingsError{Problem: fmt.Sprintf(format, args...)}
}
