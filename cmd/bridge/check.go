package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"blobfeed/internal/check"
	"blobfeed/internal/config"
	"blobfeed/source"
	"blobfeed/source/azure"
)

func checkVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("check", "[--output text|json]", stderr, func(w io.Writer) {
		fmt.Fprint(w, "\nTries what run needs of the feed and of Kafka, writes nothing, and says what to do. Exit code 1 if run would not work.\n")
	})
	output := fs.String("output", "text", "text, or json: a document a line")
	if err := parse(fs, args); err != nil {
		return err
	}
	asJSON, err := wantsJSON(*output)
	if err != nil {
		return err
	}
	c, err := loadConfig(false)
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	var found check.Findings
	if err := checkFeed(ctx, c, &found); err != nil {
		return &usageError{err}
	}
	if err := checkKafka(ctx, c, &found); err != nil {
		return &usageError{err}
	}
	show := found.Text
	if asJSON {
		show = found.JSON
	}
	if err := show(stdout); err != nil {
		return err
	}
	if failed := found.Count(check.Failed); failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(found))
	}
	return nil
}

// checkFeed looks at the source.
func checkFeed(ctx context.Context, c *config.Config, found *check.Findings) error {
	feed, id, _, err := openFeed(c)
	if err != nil {
		return err
	}
	ck := feedChecker{Findings: found, feed: feed, now: time.Now()}
	ck.source(ctx, id)
	if !strings.HasPrefix(c.SourceURL, "file://") {
		ac := azureConfig(c)
		advice := ac.Advice(ck.now)
		for _, text := range advice {
			ck.Add("rights", check.Warning, text, "")
		}
		if len(advice) == 0 && ac.Auth != "anonymous" && found.Count(check.Failed) == 0 {
			ck.rights(ctx, &ac)
		}
	}
	return nil
}

// rights looks whether the credentials may do more than they need.
func (ck *feedChecker) rights(ctx context.Context, ac *azure.Config) {
	more, err := ac.ReadsMore(ctx)
	switch {
	case err != nil:
		ck.Add("rights", check.Warning, "asking for another container than the feed's: "+err.Error(), "")
	case more:
		ck.Add("rights", check.Warning, "the credentials may read other containers than "+azure.Container,
			"give them the role on that container alone: "+grant)
	default:
		ck.Add("rights", check.OK, "the credentials may read no other container than "+azure.Container, "")
	}
}

// grant gives what reading the feed takes, and no more.
const grant = "az role assignment create --role 'Storage Blob Data Reader' --assignee <identity> " +
	"--scope '<resource id of the account>/blobServices/default/containers/$blobchangefeed'"

type feedChecker struct {
	*check.Findings
	feed *source.Feed
	now  time.Time
}

// fail notes an error; it returns false if there is none.
func (ck *feedChecker) fail(what string, err error) bool {
	if err == nil {
		return false
	}
	do := "see the error: address, network, proxy or credentials (BRIDGE_SOURCE_URL, BRIDGE_SOURCE_AUTH)"
	switch {
	case errors.Is(err, source.ErrNotEnabled):
		do = "az storage account blob-service-properties update --account-name <account> --enable-change-feed true"
	case errors.Is(err, source.ErrNotFound):
		do = "look again: retention may just have removed it"
	case strings.Contains(err.Error(), "Storage Blob Data Reader"):
		do = grant + "; it takes some minutes"
	}
	ck.Add(what, check.Failed, err.Error(), do)
	return true
}

// source walks through what reading takes: the watermark, listings, the oldest and the newest manifest, bytes of a chunk.
func (ck *feedChecker) source(ctx context.Context, id string) {
	last, err := ck.feed.LastConsumable(ctx)
	if ck.fail("reach", err) {
		return
	}
	ck.Add("reach", check.OK, id+" answers, the credentials are accepted", "")
	if last.IsZero() {
		ck.Add("feed", check.Warning, "the change feed is enabled and has published nothing yet", "wait: the first segment comes some minutes after the first change")
		return
	}
	var oldest, newest source.Segment
	segments := 0
	for seg, err := range ck.feed.Segments(ctx, source.Segment{}) {
		if ck.fail("list", err) {
			return
		}
		if segments == 0 {
			oldest = seg
		}
		newest = seg
		segments++
	}
	if segments == 0 {
		ck.Add("feed", check.Warning, "there is no segment yet", "wait: the first one comes some minutes after the first change")
		return
	}
	ck.Add("list", check.OK, fmt.Sprintf("%d segments, from %s to %s: %s of history", segments, oldest, newest, span(newest.Time().Sub(oldest.Time()))), "")
	m, err := ck.feed.Manifest(ctx, oldest)
	if ck.fail("read", err) {
		return
	}
	for _, shard := range m.Shards {
		r := ck.feed.Shard(m, shard, source.ShardPosition{})
		if ck.fail("read", r.Poll(ctx, m.Finalized)) {
			return
		}
		var b source.Batch
		if err := r.Next(ctx, &b); !errors.Is(err, io.EOF) && ck.fail("read", err) {
			return
		}
	}
	ck.Add("read", check.OK, fmt.Sprintf("the oldest segment's manifest and its %d shards can be read", len(m.Shards)), "")
	if m, err = ck.feed.Manifest(ctx, newest); ck.fail("newest", err) {
		return
	}
	status := "open"
	if m.Finalized {
		status = "finalized"
	}
	ck.Add("newest", check.OK, fmt.Sprintf("segment %s is %s, %s old", newest, status, span(ck.now.Sub(m.Begin))), "")
}

// span writes a duration as people say it: the seconds of hours are of no use, those of minutes are.
func span(d time.Duration) string {
	switch {
	case d >= 48*time.Hour:
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	case d >= time.Hour:
		return strings.TrimSuffix(d.Round(time.Minute).String(), "0s")
	}
	return d.Round(time.Second).String()
}
