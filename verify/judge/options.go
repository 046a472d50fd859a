// Package judge checks what the bridge wrote to topics against its promises: it reads the state and the topics from
// Kafka, the feed if asked to, chooses the validators of package verify that apply under the settings, and reports what
// they find.
//
// Run reads everything in an order in which nothing that the bridge does meanwhile looks like a fault: the state before
// the ends of the topics, so that what the state covers is in the topics, and those before the feed, so that what is in
// a topic is in the feed.
package judge

import (
	"context"
	"fmt"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/verify"
)

// Options say what to judge, by the settings with which the topics were written.
type Options struct {
	bridge.Options                  // without Feed and FeedID, the feed is not read
	Record         envelope.Options // of records, without topic and account
	Account        string           // storage account, where the settings name one
	// EncoderOf makes an encoder that registers no schema.
	EncoderOf func(context.Context, envelope.Options) (*envelope.Encoder, error)
	// Schema returns a schema of the registry. Nil: no record is in Avro.
	Schema func(ctx context.Context, id int) (string, error)

	ReplayName func(topic string) string // of a replay into a topic

	Topic     string             // "": all that the bridge has written to
	ReadFeed  bool               // compare the topics with the feed
	Bounded   bool               // use only validators that keep nothing for each event or key
	GrownFrom []int              // former numbers of partitions, rising
	Until     envelope.Timestamp // judge up to the first marker at or above it; zero: to the end
}

// Run judges the topics. The error says why it can't; what is wrong with a topic is in its report.
func Run(ctx context.Context, o Options) ([]*Report, error) {
	return newVerification(o).run(ctx)
}

// verification is one run.
type verification struct {
	Options
	cluster cluster
	avro    *verify.Avro // nil: no record is in Avro
	sharing *sharing     // nil: no other bridge may write to the topics
}

func newVerification(o Options) *verification {
	v := &verification{Options: o, cluster: brokers(o.Client)}
	if o.Schema != nil {
		v.avro = verify.NewAvro(func(id int) (string, error) { return o.Schema(context.Background(), id) })
	}
	return v
}

// unusable returns an error that other settings or flags prevent.
func unusable(format string, args ...any) error {
	return &bridge.SettingsError{Problem: fmt.Sprintf(format, args...)}
}
