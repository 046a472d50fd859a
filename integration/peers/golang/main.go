// Command golang is the plain reader that a Go programmer writes for the change feed: azblob, hamba/avro, encoding/json
// and franz-go, without positions, retries of its own or transactions.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/hamba/avro/v2/ocf"
	"github.com/twmb/franz-go/pkg/kgo"
)

const feedContainer = "$blobchangefeed"

func main() {
	if err := run(context.Background()); err != nil {
		fmt.Fprintln(os.Stderr, "golang:", err)
		os.Exit(1)
	}
}

type peer struct {
	blobs  *azblob.Client
	kafka  *kgo.Client
	mu     sync.Mutex
	failed error // the last
}

func run(ctx context.Context) error {
	end, err := time.Parse(time.RFC3339, os.Getenv("PEER_END"))
	if err != nil {
		return fmt.Errorf("reading PEER_END: %w", err)
	}
	p := &peer{}
	account := os.Getenv("AZURE_STORAGE_CONNECTION_STRING")
	if p.blobs, err = azblob.NewClientFromConnectionString(account, nil); err != nil {
		return err
	}
	// The client's defaults: idempotent, all acknowledgements, snappy.
	if p.kafka, err = kgo.NewClient(kgo.SeedBrokers(strings.Split(os.Getenv("KAFKA_BROKERS"), ",")...),
		kgo.DefaultProduceTopic(os.Getenv("PEER_TOPIC"))); err != nil {
		return err
	}
	defer p.kafka.Close()
	manifests, err := p.list(ctx, "idx/segments/")
	if err != nil {
		return err
	}
	for _, name := range manifests {
		begin, err := time.Parse("idx/segments/2006/01/02/1504/meta.json", name)
		if err != nil {
			return err
		}
		if begin.Before(end) {
			if err := p.segment(ctx, name); err != nil {
				return fmt.Errorf("reading %s: %w", name, err)
			}
		}
	}
	return errors.Join(p.kafka.Flush(ctx), p.failed)
}

func (p *peer) list(ctx context.Context, prefix string) (names []string, err error) {
	pages := p.blobs.NewListBlobsFlatPager(feedContainer, &azblob.ListBlobsFlatOptions{Prefix: &prefix})
	for pages.More() {
		page, err := pages.NextPage(ctx)
		if err != nil {
			return nil, err
		}
		for _, b := range page.Segment.BlobItems {
			names = append(names, *b.Name)
		}
	}
	return names, nil
}

func (p *peer) segment(ctx context.Context, name string) error {
	r, err := p.blobs.DownloadStream(ctx, feedContainer, name, nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	var manifest struct {
		ChunkFilePaths []string `json:"chunkFilePaths"`
	}
	if err := json.NewDecoder(r.Body).Decode(&manifest); err != nil {
		return err
	}
	for _, shard := range manifest.ChunkFilePaths {
		chunks, err := p.list(ctx, strings.TrimPrefix(shard, feedContainer+"/"))
		if err != nil {
			return err
		}
		for _, chunk := range chunks {
			if err := p.chunk(ctx, chunk); err != nil {
				return fmt.Errorf("reading %s: %w", chunk, err)
			}
		}
	}
	return nil
}

func (p *peer) chunk(ctx context.Context, name string) error {
	r, err := p.blobs.DownloadStream(ctx, feedContainer, name, nil)
	if err != nil {
		return err
	}
	defer r.Body.Close()
	events, err := ocf.NewDecoder(r.Body)
	if err != nil {
		return err
	}
	for events.HasNext() {
		var event map[string]any
		if err := events.Decode(&event); err != nil {
			return err
		}
		value, err := json.Marshal(event)
		if err != nil {
			return err
		}
		subject, _ := event["subject"].(string)
		key := strings.Replace(strings.TrimPrefix(subject, "/blobServices/default/containers/"), "/blobs/", "/", 1)
		p.kafka.Produce(ctx, &kgo.Record{Key: []byte(key), Value: value}, p.delivered)
	}
	return events.Error()
}

func (p *peer) delivered(_ *kgo.Record, err error) {
	if err != nil {
		p.mu.Lock()
		p.failed = err
		p.mu.Unlock()
	}
}
