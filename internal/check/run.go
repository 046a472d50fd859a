package check

import (
	"context"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/kafka"
	"blobfeed/source"
	"blobfeed/source/azure"
)

// Bridge is the bridge whose surroundings are checked.
type Bridge struct {
	Options      *bridge.Options
	Record       envelope.Options
	Azure        *azure.Config // nil: the feed is elsewhere
	Kafka        *kafka.Client
	Registry     *kafka.Registry // nil: none is needed
	Insecure     []string        // settings that leave something unencrypted or unchecked
	LongestTopic int             // bytes of the longest name that the template can make

	sample []source.Event // the first of the feed
}

// Run tries what the bridge needs of the feed, the brokers and the registry. It writes nothing. An error is one of the
// settings; everything else is a finding.
func Run(ctx context.Context, b *Bridge, now time.Time) (Findings, error) {
	var fs Findings
	fs.feed(ctx, b, now)
	if b.Azure != nil {
		fs.version(ctx, b.Azure)
		fs.rights(ctx, b.Azure, scans(b.Options), now)
	}
	fs.scan(ctx, b.Options)
	for _, danger := range b.Insecure {
		fs.Add("security", Warning, danger, "")
	}
	if len(b.Kafka.Brokers) == 0 {
		fs.Add("kafka", Failed, "BRIDGE_KAFKA_BROKERS is not set",
			"set it to host:port of some brokers, comma separated")
		return fs, b.registry(ctx, &fs)
	}
	ck, err := newChecker(b, now, &fs)
	if err != nil {
		return nil, err
	}
	defer ck.cl.Close()
	ck.kafka(ctx)
	if err := b.registry(ctx, &fs); err != nil {
		return nil, err
	}
	if fs.Count(Failed) == 0 { // a failure may be why the state can't be read
		ck.state(ctx)
	}
	return fs, nil
}
