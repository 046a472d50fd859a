package check

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/source"
	"blobfeed/source/azure"
	"blobfeed/source/inventory"
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
	case errors.As(err, new(*json.SyntaxError)):
		do = "this is no document of a feed: if this is a copy, copy it again, else correct BRIDGE_SOURCE_URL"
	default:
		do = "see the error: address, network, proxy or credentials (BRIDGE_SOURCE_URL, BRIDGE_SOURCE_AUTH)"
	}
	fs.Add(what, Failed, text, do)
	return true
}

// feed tries what reading takes: the watermark, listings, the oldest and the newest manifest, bytes of a chunk. It
// reports whether the service did not answer at all.
func (fs *Findings) feed(ctx context.Context, b *Bridge, now time.Time) (unreachable bool) {
	last, err := b.Options.Feed.Source.LastConsumable(ctx)
	if fs.unreadable("reach", err) {
		return errors.As(err, new(*url.Error))
	}
	fs.contents(ctx, b, last, now)
	return false
}

func (fs *Findings) contents(ctx context.Context, b *Bridge, last, now time.Time) {
	feed := b.Options.Feed.Source
	answers := " answers, the credentials are accepted"
	if b.Azure == nil {
		answers = " can be read"
	}
	fs.Add("reach", OK, b.Options.Feed.ID+answers, "")
	if last.IsZero() {
		fs.unpublished(ctx, feed)
		return
	}
	var oldest, newest source.Segment
	segments := 0
	var indexed []source.Segment
	for seg, err := range feed.Segments(ctx, source.Segment{}) {
		if fs.unreadable("list", err) {
			return
		}
		if segments == 0 {
			oldest = seg
		}
		newest = seg
		segments++
		if b.Dir != "" {
			indexed = append(indexed, seg)
		}
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
	if b.Dir != "" {
		fs.copied(ctx, b, indexed, source.SegmentAt(last), now)
	}
	m, err := feed.Manifest(ctx, newest)
	if b.Dir != "" && errors.Is(err, source.ErrNotFound) {
		err = plain.WithRemedy(err, status.CopyAgain)
	}
	if fs.unreadable("newest", err) {
		return
	}
	status := "open"
	if m.Finalized {
		status = "finalized"
	}
	fs.Add("newest", OK, fmt.Sprintf("segment %s is %s, %s old", newest, status, plain.Span(now.Sub(m.Begin))), "")
}

// shardFiles are the chunks that a copy has of a shard of a segment.
type shardFiles struct {
	segment      source.Segment
	sample       string // the name of one
	lowest, most int    // their numbers
	count        int
}

// copied compares log/ with idx/ in a copy of a feed. An interrupted one lacks manifests, or has empty chunks, which
// run does not notice, or it lacks chunks. The service deletes manifests before chunks, and chunks from the first one
// on. A copy may end in the middle of an open segment, and log/ may be newer than meta/, which is copied last: chunks
// of segments after the published one say nothing.
func (fs *Findings) copied(
	ctx context.Context, b *Bridge, indexed []source.Segment, published source.Segment, now time.Time,
) {
	feed, dir := b.Options.Feed.Source, b.Dir
	oldest, newest := indexed[0], indexed[len(indexed)-1]
	open := newest
	if m, err := feed.Manifest(ctx, open); err == nil && m.Finalized { // read before its chunks are listed
		open = source.Segment{}
	}
	var empty, torn, bare, half, waits, lost, gaps []string
	shards, named := map[string]*shardFiles{}, map[string]bool{}
	err := filepath.WalkDir(filepath.Join(dir, "log"), func(path string, e os.DirEntry, err error) error {
		if err = cmp.Or(err, ctx.Err()); err != nil || e.IsDir() {
			return err
		}
		chunk, _ := filepath.Rel(dir, path)
		chunk = filepath.ToSlash(chunk)
		parts := strings.Split(chunk, "/") // log/<shard>/yyyy/mm/dd/hhmm/<number>.avro
		if len(parts) != 7 {
			return nil
		}
		seg, err := source.ParseSegment(strings.Join(parts[2:6], "/"))
		n, not := strconv.Atoi(strings.TrimSuffix(parts[6], ".avro"))
		if err != nil || not != nil || seg.Compare(oldest) < 0 || seg.Compare(published) > 0 {
			return nil
		}
		prefix := strings.TrimSuffix(chunk, parts[6])
		have := shards[prefix]
		if have == nil {
			have = &shardFiles{segment: seg, sample: chunk, lowest: n}
			shards[prefix] = have
		}
		have.lowest, have.most = min(have.lowest, n), max(have.most, n)
		have.count++
		if info, err := e.Info(); err == nil && info.Size() == 0 && seg != open {
			empty = append(empty, chunk)
		}
		return nil
	})
	if fs.unreadable("copy", err) {
		return
	}
	for _, seg := range indexed {
		m, err := feed.Manifest(ctx, seg)
		if errors.Is(err, source.ErrNotFound) {
			torn, b.lacks = append(torn, seg.String()), append(b.lacks, seg)
			continue
		}
		if fs.unreadable("copy", err) {
			return
		}
		var without []string
		for _, prefix := range m.Paths {
			if named[prefix] = true; shards[prefix] == nil {
				without = append(without, prefix)
			}
		}
		switch end := m.Begin.Add(m.Interval); {
		case m.Finalized && len(without) > 0 && len(without) == len(m.Paths):
			bare, b.lacks = append(bare, seg.String()), append(b.lacks, seg)
		case m.Finalized:
			half = append(half, without...)
		case seg != newest && now.Sub(end) > bridge.Overdue:
			waits = append(waits, seg.String())
		}
	}
	for _, prefix := range slices.Sorted(maps.Keys(shards)) {
		switch have := shards[prefix]; {
		case slices.Contains(b.lacks, have.segment): // run does not get there
		case !named[prefix] && have.segment != open:
			lost = append(lost, have.sample)
		case have.segment != oldest && (have.lowest > 0 || have.most >= have.count):
			gaps = append(gaps, prefix)
		}
	}
	agree := true
	for _, missing := range []struct {
		names       []string
		what, means string
	}{
		{torn, "segment", "without a manifest in idx/, such as %s" + stops},
		{bare, "segment", "without a chunk in log/, such as %s" + stops},
		{half, "shard", "named in a manifest without a chunk in log/, such as %s: run leaves it out"},
		{waits, "segment", "still open although there are later ones, such as %s: run waits there for Azure"},
		{gaps, "shard", "with a missing chunk, such as %s: run takes that for lost history"},
		{lost, "shard", "in no manifest of idx/, such as that of %s: run leaves it out"},
		{empty, "chunk", "without a byte, such as %s: run takes that for its end"},
	} {
		if n := len(missing.names); n > 0 {
			agree = false
			fs.Add("copy", Warning,
				plain.Count(n, missing.what)+" "+fmt.Sprintf(missing.means, missing.names[0]), status.CopyAgain)
		}
	}
	if agree {
		where := ""
		if open != (source.Segment{}) {
			where = " before the newest segment"
		}
		fs.Add("copy", OK, "log/ and idx/ agree"+where, "")
	}
}

// stops ends the finding of what run can't pass.
const stops = ": run stops there"

// stops makes failures of what a copy lacks, if run gets there: the bridge may have delivered it before.
func (ck *checker) stops(ctx context.Context) {
	gets := func(seg source.Segment) bool {
		f := ck.frontier
		switch end := ck.bridge.Feed.End.Wall; {
		case ck.unread != nil || end > 0 && seg.Time().UnixNano() > end:
			return false
		case f == nil:
			return !seg.Time().Before(ck.oldest(ctx))
		case f.Current != (source.Segment{}):
			return seg.Compare(f.Current) >= 0
		}
		return seg.Compare(f.Completed) > 0
	}
	if !slices.ContainsFunc(ck.of.lacks, gets) {
		return
	}
	for i := range *ck.Findings {
		if f := &(*ck.Findings)[i]; f.Check == "copy" && strings.HasSuffix(f.Detail, stops) {
			f.Status = Failed
		}
	}
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
	feed := b.Options.Feed.Source
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

// soon is the time before the end of credentials from which on a check warns.
const soon = 7 * 24 * time.Hour

// rights reports what the credentials for the feed may do more than they need, and a signature that ends soon.
// A scan reads the whole account.
func (fs *Findings) rights(ctx context.Context, c *azure.Config, scans bool, now time.Time) {
	advice := credentials(c, scans, now)
	for _, text := range advice {
		fs.Add("rights", Warning, text, "")
	}
	if len(advice) > 0 || scans || c.Auth == "anonymous" || fs.Count(Failed) > 0 {
		return
	}
	more, err := c.ReadsMore(ctx)
	switch {
	case err != nil:
		fs.Add("rights", Warning, "asking for another container than the feed's: "+err.Error(), "")
	case more:
		fs.Add("rights", Warning, "the credentials may read other containers than "+azure.Container,
			"give them the role on that container alone: "+azure.Grant)
	default:
		fs.Add("rights", OK, "the credentials may read no other container than "+azure.Container, "")
	}
}

// version says which version of the protocol the account speaks. Not every account knows the same ones.
func (fs *Findings) version(ctx context.Context, c *azure.Config) {
	if fs.Count(Failed) > 0 {
		return
	}
	if version, err := c.Version(ctx); !fs.unreadable("version", err) {
		fs.Add("version", OK, "the account answers with version "+version+" of the Blob service", "")
	}
}

// credentials says what is wrong with the credentials themselves, although they may work.
func credentials(c *azure.Config, scans bool, now time.Time) (advice []string) {
	place := "the container " + azure.Container
	if scans {
		place = "the account"
	}
	q, begin, end, err := c.Signature()
	switch {
	case err != nil:
		return []string{err.Error()}
	case c.Auth == "shared_key", c.Auth == "connection_string" && q == nil:
		return []string{"an account key may do everything with the account; the role Storage Blob Data Reader on " +
			place + ", or a signature of it with read and list, is enough"}
	case q == nil:
		return nil
	}
	permits := q.Get("sp")
	if more := strings.Trim(permits, "rl"); more != "" {
		advice = append(advice, fmt.Sprintf("the signature permits %q; r (read) and l (list) are enough", permits))
	}
	if q.Has("srt") && !scans {
		advice = append(advice, "the signature is of the account with all its containers; one of the container "+
			azure.Container+" is enough")
	}
	for _, need := range "rl" {
		if permits != "" && !strings.ContainsRune(permits, need) {
			advice = append(advice,
				fmt.Sprintf("the signature permits only %q; r (read) and l (list) are needed", permits))
		}
	}
	switch {
	case begin.After(now):
		advice = append(advice, fmt.Sprintf("the signature is not valid before %s; replace it, or wait",
			begin.Format(time.RFC3339)))
	case end.IsZero():
	case !end.After(now):
		advice = append(advice, fmt.Sprintf("the signature expired at %s; replace it (if it is in a file, without a "+
			"restart)", end.Format(time.RFC3339)))
	case end.Sub(now) < soon:
		advice = append(advice, fmt.Sprintf("the signature ends at %s; replace its file in time, it is read again",
			end.Format(time.RFC3339)))
	}
	return advice
}

// maxContainers bounds the listing of containers: 5,000 are on a page.
const maxContainers = 100_000

// containers counts the containers of the account that the settings select, and the topics that they make. The events
// of others that are created later, or were deleted, make topics, too.
func (ck *checker) containers(ctx context.Context) {
	o := ck.bridge
	if o.Feed.Inventory == nil {
		return
	}
	listed, count, topics, more := 0, 0, map[string]bool{}, ""
	for name, err := range inventory.Names(ctx, o.Feed.Inventory) {
		if err != nil {
			text, _ := plain.SplitRemedy(err)
			ck.Add("topics", OK, "the containers of the account are not counted, which run does not need: "+text, "")
			return
		}
		if listed++; listed > maxContainers {
			more = "more than "
			break
		}
		if !o.Feed.Filter.Selects(name) {
			continue
		}
		topic, err := o.Topics.Names.Name("account", name) // whose name does not matter for the count
		if err != nil {
			ck.Add("topics", Warning, err.Error(), "leave the container out with BRIDGE_CONTAINERS=!"+name)
			continue
		}
		count++
		topics[topic] = true
	}
	detail := fmt.Sprintf("the settings select %s%s of the account: %s", more, plain.Count(count, "container"),
		plain.Count(len(topics), "topic"))
	plan := o.TopicPlan()
	if near, do := plan.NearLimit(len(topics)); near {
		ck.Add("topics", Warning,
			fmt.Sprintf("%s of at most %d (BRIDGE_TOPIC_LIMIT)", detail, o.Topics.Create.Limit), do)
		return
	}
	ck.Add("topics", OK, detail, "")
}
