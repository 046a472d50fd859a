// Package kafka holds the options that all Kafka clients of the bridge share, and the client of the schema registry.
package kafka

import (
	"cmp"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Client names the brokers and how to talk to them.
type Client struct {
	Brokers     []string
	ID          string // client.id in the brokers' logs and quotas
	Compression string // none, snappy, lz4, zstd, gzip
	Buffered    int    // records in flight before a producer blocks
	BatchBytes  int    // of a batch that is read, decompressed; 0: 8 MiB

	TLS         *TLS          // nil: not encrypted
	SASL        *SASL         // nil: anonymous, or known by a certificate
	DialTimeout time.Duration // for a connection, encryption included; 0: 10 s
}

// maxBrokerAnswer bounds an answer of a broker. The largest are those that list all topics, with about 50 bytes a
// partition.
const maxBrokerAnswer = 32 << 20

// ToolFlags returns the flags of Kafka's own tools that say how to reach the brokers. The tools take TLS and
// credentials from a file only. Without that file they run out of memory on a port that needs one.
func (c *Client) ToolFlags() string {
	broker := "<broker>"
	if len(c.Brokers) > 0 {
		broker = c.Brokers[0]
	}
	text := "--bootstrap-server " + broker
	if c.TLS != nil || c.SASL != nil {
		text += " --command-config admin.properties"
	}
	return text
}

// Options returns the options, or an error that names the invalid one.
func (c *Client) Options() ([]kgo.Opt, error) {
	codec, ok := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "snappy": kgo.SnappyCompression(), "lz4": kgo.Lz4Compression(),
		"zstd": kgo.ZstdCompression(), "gzip": kgo.GzipCompression(),
	}[c.Compression]
	if !ok {
		return nil, fmt.Errorf("invalid compression %q: want none, snappy, lz4, zstd or gzip", c.Compression)
	}
	// Not ProducerBatchCompression(codec): NewClient writes into its arguments, which several clients would share.
	compress := kgo.ProducerBatchCompression()
	if c.Compression != "none" {
		compressor, err := kgo.DefaultCompressor(codec)
		if err != nil {
			return nil, fmt.Errorf("compression %s: %w", c.Compression, err)
		}
		compress = kgo.WithCompressor(compressor)
	}
	batch := cmp.Or(c.BatchBytes, 8<<20)
	opts := []kgo.Opt{
		// The writers of other topics choose what a batch holds, and the bridge reads the states of all bridges. By
		// default a batch of 32 KB may take 1 GiB, and its records many times that.
		kgo.MaxDecompressBatchBytes(batch),
		kgo.FetchMaxBytes(int32(batch)),
		kgo.FetchMaxPartitionBytes(min(1<<20, int32(batch))),
		kgo.BrokerMaxReadBytes(maxBrokerAnswer),
		kgo.SeedBrokers(c.Brokers...),
		kgo.ClientID(c.ID),
		compress,
		// Leases have a producer each, which share the events: without some patience they send many small batches, and
		// the broker's work is by batch. It costs no latency: a commit flushes at once.
		kgo.ProducerLinger(20 * time.Millisecond),
		kgo.MaxBufferedRecords(c.Buffered),
		// With the default of 5 s a produce that meets CONCURRENT_TRANSACTIONS, which three brokers say in every other
		// transaction, is repeated only 5 s later: 3 transactions a second instead of 12.
		kgo.MetadataMinAge(100 * time.Millisecond),
		// Where brokers collect metrics of clients, each client would compress and send its own: of many idle bridges,
		// that is most of the memory they allocate. The bridge has metrics of its own.
		kgo.DisableClientMetrics(),
		kgo.Dialer(dialer(c.TLS, cmp.Or(c.DialTimeout, 10*time.Second))),
	}
	if c.SASL != nil {
		mechanism, err := c.SASL.mechanism()
		if err != nil {
			return nil, err
		}
		opts = append(opts, kgo.SASL(mechanism))
	}
	return opts, nil
}
