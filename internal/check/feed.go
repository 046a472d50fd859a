package check

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

// unreadable adds an error of the feed. It returns false if there is none.
func (fs *Findings) unreadable(what string, err error) bool {
	if err == nil {
		return false
	}
	text, do := plain.SplitRemedy(err)
	switch {
	case do != "":
	case errors.Is(err, source.ErrNotFound):
		do = "run the check again: retention may have just removed it"
	case errors.Is(err, os.ErrPermission):
		do = "let the user that runs the bridge read the directory and all that is in it: chmod -R a+rX <directory>"
	default:
		do = "see the error: address, network, proxy or credentials (BRIDGE_SOURCE_URL, BRIDGE_SOURCE_AUTH)"
	}
	fs.Add(what, Failed, text, do)
	return true
}

// feed tries what reading takes: the watermark, listings, the oldest and the newest manifest, bytes of a chunk.
func (fs *Findings) feed(ctx context.Context, b *Bridge, now time.Time) {
	feed := b.Options.Feed
	last, err := feed.LastConsumable(ctx)
	if fs.unreadable("reach", err) {
		return
	}
	answers := " answers, the credentials are accepted"
	if b.Azure == nil {
		answers = " can be read"
	}
	fs.Add("reach", OK, b.Options.FeedID+answers, "")
	if last.IsZero() {
		fs.unpublished(ctx, feed)
		return
	}
	var oldest, newest source.Segment
	segments := 0
	for seg, err := range feed.Segments(ctx, source.Segment{}) {
		if fs.unreadable("list", err) {
			return
		}
		if segments == 0 {
			oldest = seg
		}
		newest = seg
		segments++
	}
	if segments == 0 {
		fs.Add("feed", Warning, "there is no segment yet", wait)
		return
	}
	fs.Add("list", OK, fmt.Sprintf("%s, from %s to %s: %s of history", plain.Count(segments, "segment"), oldest, newest,
		plain.Span(newest.Time().Sub(oldest.Time()))), "")
	if !fs.segment(ctx, b, oldest) {
		return
	}
	m, err := feed.Manifest(ctx, newest)
	if fs.unreadable("newest", err) {
		return
	}
	status := "open"
	if m.Finalized {
		status = "finalized"
	}
	fs.Add("newest", OK, fmt.Sprintf("segment %s is %s, %s old", newest, status, plain.Span(now.Sub(m.Begin))), "")
}

const wait = "wait: the first segment comes some minutes after the first change"

// unpublished finds out why the feed does not say yet how far it may be read.
func (fs *Findings) unpublished(ctx context.Context, feed *source.Feed) {
	for seg, err := range feed.Indexed(ctx) {
		if !fs.unreadable("list", err) {
			fs.Add("feed", Warning,
				fmt.Sprintf("there is the segment %s, and meta/segments.json does not exist yet", seg),
				"wait: the service writes it some minutes later")
		}
		return
	}
	fs.Add("feed", Warning, "the change feed is enabled and has published nothing yet", wait)
}

// segment reads the beginning of each shard of a segment.
func (fs *Findings) segment(ctx context.Context, b *Bridge, seg source.Segment) (readable bool) {
	feed := b.Options.Feed
	m, err := feed.Manifest(ctx, seg)
	if fs.unreadable("read", err) {
		return false
	}
	for _, shard := range m.Shards {
		r := feed.Shard(m, shard, source.ShardPosition{})
		if fs.unreadable("read", r.Poll(ctx, m.Finalized)) {
			return false
		}
		if lacks := r.Lacks(); lacks != "" {
			fs.Add("read", Warning, lacks, "")
		}
		var batch source.Batch
		if err := r.Next(ctx, &batch); !errors.Is(err, io.EOF) && fs.unreadable("read", err) {
			return false
		}
		b.sample = append(b.sample, batch.Events...)
	}
	fs.Add("read", OK,
		fmt.Sprintf("the manifest of the oldest segment and its %s can be read", plain.Count(len(m.Shards), "shard")),
		"")
	return true
}
