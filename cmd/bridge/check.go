package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"blobfeed/config"
	"blobfeed/source"
)

// finding is one line of a check.
type finding struct {
	Check  string `json:"check"`
	Status string `json:"status"` // ok, warning, failed
	Detail string `json:"detail"`
	Do     string `json:"do,omitempty"` // what to do about it
}

func checkVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("check", "[--output text|json]", stderr, func(w io.Writer) {
		fmt.Fprint(w, "\nTries what run needs of the feed, changes nothing, and says what to do. Exit code 1 if run would not work.\n")
	})
	output := fs.String("output", "text", "text, or json: a document a line")
	if err := parse(fs, args); err != nil {
		return err
	}
	if *output != "text" && *output != "json" {
		return &usageError{fmt.Errorf("--output %s: want text or json", *output)}
	}
	c, err := config.Load(false)
	if err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	feed, id, _, err := openFeed(c)
	if err != nil {
		return &usageError{err}
	}
	ck := checker{feed: feed, now: time.Now()}
	ck.source(ctx, id)
	if !strings.HasPrefix(c.SourceURL, "file://") {
		ac := azureConfig(c)
		for _, advice := range ac.Advice(ck.now) {
			ck.add("rights", "warning", advice, "")
		}
	}
	return ck.report(stdout, *output == "json")
}

// checker collects findings.
type checker struct {
	feed     *source.Feed
	now      time.Time
	findings []finding
}

func (ck *checker) add(check, status, detail, do string) {
	ck.findings = append(ck.findings, finding{check, status, detail, do})
}

// fail notes an error; it returns false if there is none.
func (ck *checker) fail(check string, err error) bool {
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
		do = "az role assignment create --role 'Storage Blob Data Reader' --assignee <identity> --scope <account's resource id>; it takes some minutes"
	}
	ck.add(check, "failed", err.Error(), do)
	return true
}

// source walks through what reading takes: the watermark, listings, the oldest and the newest manifest, bytes of a chunk.
func (ck *checker) source(ctx context.Context, id string) {
	last, err := ck.feed.LastConsumable(ctx)
	if ck.fail("reach", err) {
		return
	}
	ck.add("reach", "ok", id+" answers, the credentials are accepted", "")
	if last.IsZero() {
		ck.add("feed", "warning", "the change feed is enabled and has published nothing yet", "wait: the first segment comes some minutes after the first change")
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
		ck.add("feed", "warning", "there is no segment yet", "wait: the first one comes some minutes after the first change")
		return
	}
	ck.add("list", "ok", fmt.Sprintf("%d segments, from %s to %s: %s of history", segments, oldest, newest, span(newest.Time().Sub(oldest.Time()))), "")
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
	ck.add("read", "ok", fmt.Sprintf("the oldest segment's manifest and its %d shards can be read", len(m.Shards)), "")
	if m, err = ck.feed.Manifest(ctx, newest); ck.fail("newest", err) {
		return
	}
	status := "open"
	if m.Finalized {
		status = "finalized"
	}
	ck.add("newest", "ok", fmt.Sprintf("segment %s is %s, %s old", newest, status, span(ck.now.Sub(m.Begin))), "")
}

// span writes a duration as people say it: the seconds of weeks are of no use.
func span(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", int(d.Hours()/24))
	}
	return d.Round(time.Minute).String()
}

func (ck *checker) report(out io.Writer, asJSON bool) error {
	failed := 0
	for _, f := range ck.findings {
		if f.Status == "failed" {
			failed++
		}
		var err error
		if asJSON {
			err = json.NewEncoder(out).Encode(f)
		} else {
			_, err = fmt.Fprintf(out, "%-8s %-8s %s\n", f.Status, f.Check, f.Detail)
			if err == nil && f.Do != "" {
				_, err = fmt.Fprintf(out, "%18s-> %s\n", "", f.Do)
			}
		}
		if err != nil {
			return err
		}
	}
	if failed > 0 {
		return fmt.Errorf("%d of %d checks failed", failed, len(ck.findings))
	}
	return nil
}
