package judge

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sync/errgroup"

	"blobfeed/envelope"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/source"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// census compares the tables that topics make with the blobs that the account has. It reads the topics, then lists the
// account, and looks again at the keys that differ: most of them were changed between the two.
//
// A pass takes the keys with some values of their hash. If they are too many for memory, each pass takes half of them,
// and there are twice as many passes.
type census struct {
	v      *verification
	judged []*judgedTopic
	only   *judgedTopic // of all keys; nil: a template gives each blob its topic
	values verify.Values
	seed   maphash.Seed

	parts, part uint64                // this pass takes the keys of this part
	rows        map[uint64]uint64     // of this pass: what the topics have, by key
	lasts       map[keyPartition]last // the same by partition, of a topic that got partitions
	differences map[uint64]*difference
	lost        int64 // keys that differ, beyond those
	blobs       int64
	stray       map[string]int64 // blobs by a topic that the state does not know
	began       time.Time        // by the clock of the service
}

// difference is a key of which the topic and the account differed at first.
type difference struct {
	topic   *judgedTopic
	key     string
	path    string
	listed  bool       // the account had it at first
	row     verify.Row // the newest record of the key, its partition and its time
	at      envelope.Timestamp
	in      int32
	blob    *inventory.Blob // in the account; nil: there is none
	pending bool            // the feed has an event of it that is not delivered
}

// censusKey makes keys.
type censusKey struct {
	ev  source.Event
	buf []byte
	rec envelope.Record
}

// newCensus returns the census of the topics, or why the topics can't be compared.
func (v *verification) newCensus(judged []*judgedTopic) (*census, error) {
	c := &census{v: v, judged: judged, seed: maphash.MakeSeed(),
		differences: map[uint64]*difference{}, stray: map[string]int64{}}
	c.values = verify.Values{None: v.Record.Envelope == envelope.KeyOnly, Bare: v.Record.Envelope == envelope.Bare}
	if _, one := v.Topics.Names.Constant(); one {
		c.only = judged[0]
	}
	return c, c.comparable()
}

// comparable rejects settings and topics that do not make the table of an account.
func (c *census) comparable() error {
	v := c.v
	filter := v.Feed.Filter
	for _, not := range []struct {
		is  bool
		why string
	}{
		{v.Feed.Inventory == nil, "BRIDGE_SOURCE_URL names a directory, which has no blobs: name the storage account"},
		{v.Records.Events == envelope.EventsAll, "with BRIDGE_EVENTS=all the last record of a key may not be its blob"},
		{len(filter.EventTypes)+len(filter.ExcludeEventTypes) > 0, "filters of event types leave out changes of blobs"},
		{v.Topics.Shared, "with BRIDGE_TOPIC_SHARED=true a key does not name its account"},
		{v.Feed.End != envelope.Timestamp{}, "with BRIDGE_END_TIME the topic is a table of that time"},
		{c.values.None && (v.Record.Deletes == envelope.DeletesEnvelope || v.Record.Deletes == envelope.DeletesEmpty),
			"with envelope=key_only a deletion looks like a row: BRIDGE_DELETES=tombstone or both is needed"},
		{v.state == nil, v.Name + ".offsets has no state, which says what is delivered"},
	} {
		if not.is {
			return plain.SettingsErrorf("--account: %s", not.why)
		}
	}
	f, began := v.state.Frontier, ""
	if all := f.Delivered(); f.Epoch == 0 {
		began = f.Start
	} else if f.Scan == nil && len(all) > 0 && all[0].After != (source.Segment{}) {
		began = "a segment behind " + all[0].After.String()
	}
	switch {
	case f.Scan.Active() && f.Scan.Initial:
		return plain.SettingsErrorf("--account: the initial scan %s is not complete: wait for it", f.Scan.ID)
	case began != "":
		return plain.SettingsErrorf("--account: the bridge began at %s without a scan: blobs that were written before "+
			"are not in the topic", began)
	}
	for _, s := range c.judged {
		for p, from := range s.from {
			if from > 0 {
				return plain.SettingsErrorf("--account: partition %d of %s begins at offset %d: retention has deleted "+
					"records, so the topic can't have every key", p, s.name, from)
			}
		}
	}
	return nil
}

// take compares everything, adds to the reports of the topics what was found, and returns reports of missing topics.
func (c *census) take(ctx context.Context, reports []*Report) (more []*Report, err error) {
	if err := c.compare(ctx); err != nil {
		return nil, err
	}
	if err := c.settle(ctx); err != nil {
		return nil, err
	}
	for i, s := range c.judged {
		c.report(reports[i], s)
	}
	return c.v.state.missing("account", accountPromise, "the account has", "blob", c.stray), nil
}

// compare finds the keys that differ when they are compared first.
func (c *census) compare(ctx context.Context) error {
	c.parts = 1
	for c.part = 0; c.part < c.parts; c.part++ {
		c.rows, c.lasts = map[uint64]uint64{}, map[keyPartition]last{}
		for _, s := range c.judged {
			if err := c.read(ctx, s); err != nil {
				return err
			}
		}
		if err := c.list(ctx); err != nil {
			return err
		}
		for h := range c.rows { // the topic has them, and the account does not
			c.differ(h)
		}
	}
	return nil
}

// read adds the last record of each key.
func (c *census) read(ctx context.Context, s *judgedTopic) error {
	mine := func(h uint64) bool { return h%c.parts == c.part }
	err := c.each(ctx, s.topic, s.from, mine, func(h uint64, r *verify.Record, row verify.Row) {
		switch {
		case s.growth.grew():
			c.lasts[keyPartition{h, r.Partition}] = last{c.sum(row.ETag, row.Length), row.Deleted, timeOf(r)}
			c.halve()
		case row.Deleted:
			delete(c.rows, h)
		default:
			c.rows[h] = c.sum(row.ETag, row.Length)
			c.halve()
		}
	})
	c.merge(s)
	return err
}

// each shows the records of the wanted keys, from some offsets to the end of a topic, by the hashes of their keys.
func (c *census) each(ctx context.Context, t *topic, from map[int32]int64, wanted func(uint64) bool,
	show func(uint64, *verify.Record, verify.Row),
) error {
	var failed error
	err := t.read(ctx, from, t.to, func(r verify.Record) (more bool) {
		h := c.hash(t.name, r.Key)
		if r.Key == nil || !wanted(h) {
			return true
		}
		row, err := r.Row(c.values)
		if err != nil {
			failed = fmt.Errorf("partition %d of %s, offset %d: %w", r.Partition, t.name, r.Offset, err)
			return false
		}
		show(h, &r, row)
		return true
	})
	return errors.Join(err, failed)
}

// halve leaves half of the keys to another pass, if there are too many. Only the first pass does that: the parts are
// of about the same size.
func (c *census) halve() {
	for c.part == 0 && len(c.rows)+laneKeys*len(c.lasts) > c.v.limits.keys {
		c.parts *= 2
		maps.DeleteFunc(c.rows, func(h, _ uint64) bool { return h%c.parts != 0 })
		maps.DeleteFunc(c.lasts, func(l keyPartition, _ last) bool { return l.key%c.parts != 0 })
	}
}

// list compares each blob of the account with its key's row, and leaves the rows that have no blob.
func (c *census) list(ctx context.Context) error {
	var one sync.Mutex
	var e censusKey
	o := inventory.Options{Mine: c.v.Feed.Filter.Selects, Requests: c.v.Pace.ScanRequests,
		Prefix: func(container string) string {
			prefix, _ := c.v.Feed.Filter.Prefix(container)
			return prefix
		}}
	return inventory.Walk(ctx, c.v.Feed.Inventory, inventory.Progress{}, o,
		func(_ context.Context, s *inventory.Step) error {
			one.Lock()
			defer one.Unlock()
			if c.began.IsZero() {
				c.began = s.Served
			}
			if s.Listed == nil {
				return nil
			}
			for i := range s.Listed.Blobs {
				if err := c.blob(&e, s.Container, &s.Listed.Blobs[i]); err != nil {
					return err
				}
			}
			return nil
		})
}

// blob compares a blob.
func (c *census) blob(e *censusKey, container string, b *inventory.Blob) error {
	s, key, err := c.key(e, container, b)
	if s == nil || err != nil {
		return err
	}
	h := c.hash(s.name, key)
	if h%c.parts != c.part {
		return nil
	}
	c.blobs++
	has, known := c.rows[h]
	if known && c.same(has, b) {
		delete(c.rows, h)
		return nil
	}
	delete(c.rows, h)
	if x := c.differ(h); x != nil {
		x.topic, x.key, x.path, x.listed = s, string(key), container+"/"+b.Name, true
	}
	return nil
}

// same reports whether what a topic has is the blob. Appends and writes of pages have no events, so of such blobs only
// the presence counts.
func (c *census) same(has uint64, b *inventory.Blob) bool {
	return b.BlobType != "BlockBlob" || has == c.sum(b.ETag, b.Length)
}

// sum is what is compared of a row: the columns that it has.
func (c *census) sum(etag string, length int64) uint64 {
	if c.without("etag") {
		etag = ""
	}
	if c.without("content_length") {
		length = 0
	}
	return maphash.Comparable(c.seed, verify.Row{ETag: etag, Length: length})
}

func (c *census) without(column string) bool {
	return c.values.None || !c.v.Record.Chooses(column)
}

func (c *census) hash(topic string, key []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	_, _ = h.WriteString(topic) // a Hash never fails
	_ = h.WriteByte(0)
	_, _ = h.Write(key)
	return h.Sum64()
}

// key returns the topic and the key of a blob. Without a topic, the blob does not count.
func (c *census) key(e *censusKey, container string, b *inventory.Blob) (*judgedTopic, []byte, error) {
	e.ev = source.Event{
		Subject: envelope.SubjectOf(container, b.Name), BlobType: b.BlobType,
		EventTime: "1970-01-01T00:00:00Z", // of the key nothing else matters
	}
	if !c.v.Feed.Filter.MatchRow(&e.ev) {
		return nil, nil, nil
	}
	s := c.only
	if s == nil {
		topic, err := c.v.Topics.Names.Of(&e.ev)
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(c.judged, func(s *judgedTopic) bool { return s.name == topic })
		if i < 0 {
			if c.v.Topic == "" && b.Modified.Before(c.began) && c.part == 0 {
				c.stray[topic]++
			}
			return nil, nil, nil
		}
		s = c.judged[i]
	}
	var err error
	e.buf, err = s.encoder.AppendRow(e.buf[:0], &e.rec, &e.ev, &envelope.Scan{})
	return s, e.rec.Key, err
}

// selects reports whether the settings select the blob of a path that a topic has.
func (c *census) selects(path, blobType string) bool {
	container, name, _ := strings.Cut(path, "/")
	filter := c.v.Feed.Filter
	if blobType == "" {
		filter.BlobTypes = nil
	}
	return filter.MatchRow(&source.Event{Subject: envelope.SubjectOf(container, name), BlobType: blobType})
}

// After partitions were added, a key can have records in its partition of today and in former ones, and the order of
// records in two partitions is unknown. The record with the highest updated is the newest: the last one of a partition
// is compared with the last ones of others.

// keyPartition is a key in a partition.
type keyPartition struct {
	key       uint64
	partition int32
}

// laneKeys is how many keys of a topic that did not grow take the memory of one lane, with what merge makes of it.
const laneKeys = 4

// last is the last record of a key in a partition.
type last struct {
	row     uint64
	deleted bool
	at      envelope.Timestamp
}

// timeOf returns the updated of a record, or its timestamp if it does not say that.
func timeOf(r *verify.Record) envelope.Timestamp {
	at, err := envelope.ParseTimestamp(string(r.Updated()))
	if err != nil {
		at = envelope.Timestamp{Wall: r.Millis * int64(time.Millisecond)}
	}
	return at
}

// merge puts the newest record of each key of a topic into rows.
func (c *census) merge(s *judgedTopic) {
	newest := map[uint64]last{}
	for l, x := range c.lasts {
		if y, known := newest[l.key]; !known || x.at.Compare(y.at) > 0 {
			newest[l.key] = x
		}
	}
	stale := map[uint64]bool{}
	for l, x := range c.lasts {
		if y := newest[l.key]; !x.deleted && (x.row != y.row || y.deleted) {
			stale[l.key] = true
		}
	}
	for key, x := range newest {
		if !x.deleted {
			c.rows[key] = x.row
		}
	}
	s.growth.stale += int64(len(stale))
	clear(c.lasts)
}

// take takes a record of the key, unless one of another partition is newer.
func (x *difference) take(r *verify.Record, row verify.Row) {
	if at := timeOf(r); r.Partition == x.in || at.Compare(x.at) >= 0 {
		x.row, x.at, x.in = row, at, r.Partition
	}
}

// censusShown is how many keys of a topic a report names.
const censusShown = 100

// changing reports whether a key was changed while the two were compared, so that nothing can be said of it.
func (x *difference) changing(began time.Time) bool {
	if x.blob == nil {
		return x.listed
	}
	return !x.blob.Modified.Before(began.Truncate(time.Second))
}

// problem says how the topic and the account differ.
func (x *difference) problem() string {
	topic, account := "no blob", "no blob"
	if !x.row.Deleted {
		topic = describe(x.row.ETag, x.row.Length)
	}
	if x.blob != nil {
		account = describe(x.blob.ETag, x.blob.Length)
	}
	return fmt.Sprintf("the topic has %s, the account %s", topic, account)
}

func describe(etag string, length int64) string {
	return fmt.Sprintf("a blob of %s with etag %s", plain.Count(length, "byte"), cmp.Or(etag, "unknown"))
}

// report adds what was found in a topic.
func (c *census) report(r *Report, s *judgedTopic) {
	check := checkReport{Name: "account", Promise: accountPromise, Status: NotChecked}
	var failures []verify.Failure
	var pending, changing int64
	var bad []*difference
	for _, x := range c.differences {
		switch {
		case x.topic != s:
		case x.pending:
			pending++
		case x.changing(c.began):
			changing++
		default:
			bad = append(bad, x)
		}
	}
	slices.SortFunc(bad, func(a, b *difference) int { return strings.Compare(a.key, b.key) })
	for _, x := range bad[:min(len(bad), censusShown)] {
		failures = append(failures, verify.Failure{Key: x.key, Problem: x.problem()})
	}
	if more := len(bad) - censusShown; more > 0 {
		failures = append(failures, verify.Failure{Problem: "and " + plain.Count(more, "more key")})
	}
	switch check.judge(c.blobs, failures); check.Status {
	case Broken:
		check.Remedy = "repair the topic with bridge scan --sweep"
	case NotChecked:
		check.Reason = "the account has no blob that the settings select"
	}
	r.Checks = append(r.Checks, check)
	r.noteSome(pending, "key", "not judged: %s with events in the feed that are not delivered yet")
	r.noteSome(changing, "key", "not judged: %s that changed during the comparison; compare again")
	r.noteSome(s.growth.stale, "key",
		"%s with an older blob in a former partition: consumers of whole partitions need the highest updated")
	if c.lost > 0 && r.Problem == "" {
		r.Problem = fmt.Sprintf("account: %s differed at the first comparison, which was not repeated",
			plain.Count(c.lost, "key"))
	}
}

const accountPromise = "the last record of each key is the blob, or a deletion where there is none"

// maxLookPages is how many pages, all but the last of them empty, the look-up of a blob may take.
const maxLookPages = 1000

// lookRequests is how many keys are looked up in the account at a time.
const lookRequests = 16

// differ adds a key by its hash. It returns nil if there are too many.
func (c *census) differ(h uint64) *difference {
	if len(c.differences) >= c.v.limits.differences {
		c.lost++
		return nil
	}
	x := &difference{row: verify.Row{Deleted: true}}
	c.differences[h] = x
	return x
}

// settle looks again at the keys that differ until they agree or the feed explains them, or the patience is over. A
// change takes minutes to get into the feed.
func (c *census) settle(ctx context.Context) error {
	at := map[*judgedTopic]map[int32]int64{}
	for _, s := range c.judged {
		at[s] = s.from
	}
	for until := time.Now().Add(c.v.Wait); len(c.differences) > 0; {
		for _, s := range c.judged {
			end, err := c.reread(ctx, s, at[s])
			if err != nil {
				return err
			}
			at[s] = end
		}
		if err := c.look(ctx); err != nil {
			return err
		}
		if err := c.explain(ctx); err != nil {
			return err
		}
		waits := func(x *difference) bool { return !x.pending }
		if time.Now().After(until) || !slices.ContainsFunc(slices.Collect(maps.Values(c.differences)), waits) {
			return nil
		}
		if err := pause.For(ctx, c.v.limits.poll); err != nil {
			return err
		}
	}
	return nil
}

// reread takes the last records of the keys, from some offsets to the end that the topic has now.
func (c *census) reread(ctx context.Context, s *judgedTopic, from map[int32]int64) (end map[int32]int64, err error) {
	t, err := c.v.open(ctx, s.name)
	if err != nil {
		return nil, err
	}
	differs := func(h uint64) bool { return c.differences[h] != nil }
	return t.to, c.each(ctx, t, from, differs, func(h uint64, r *verify.Record, row verify.Row) {
		x := c.differences[h]
		x.take(r, row)
		x.topic, x.key, x.path = s, string(r.Key), cmp.Or(x.path, r.Path())
	})
}

// look asks the account for each of the keys, and drops those that agree, or that the settings do not select.
func (c *census) look(ctx context.Context) error {
	group, gctx := errgroup.WithContext(ctx)
	group.SetLimit(lookRequests)
	for _, x := range c.differences {
		group.Go(func() (err error) {
			x.blob, err = c.blobOf(gctx, x.path)
			return err
		})
	}
	if err := group.Wait(); err != nil {
		return err
	}
	maps.DeleteFunc(c.differences, func(_ uint64, x *difference) bool {
		switch {
		case !c.selects(x.path, x.row.Type):
			return true
		case x.row.Deleted || x.blob == nil:
			return x.row.Deleted && x.blob == nil
		}
		return c.same(c.sum(x.row.ETag, x.row.Length), x.blob)
	})
	return nil
}

// blobOf returns the blob of a path, or nil.
func (c *census) blobOf(ctx context.Context, path string) (*inventory.Blob, error) {
	container, name, _ := strings.Cut(path, "/")
	q := inventory.Query{Container: container, Prefix: name, Max: 1}
	for range maxLookPages {
		page, err := c.v.Feed.Inventory.List(ctx, q)
		switch {
		case errors.Is(err, inventory.ErrNoContainer):
			return nil, nil
		case err != nil:
			return nil, fmt.Errorf("looking for %s: %w", path, err)
		case len(page.Blobs) > 0 && page.Blobs[0].Name == name: // it sorts before what it begins
			return &page.Blobs[0], nil
		case len(page.Blobs) > 0 || page.Marker == "":
			return nil, nil
		case page.Marker == q.Marker:
			return nil, fmt.Errorf("looking for %s: the next page of the listing is the same one: check the endpoint, "+
				"and proxies on the way to it", path)
		}
		q.Marker = page.Marker
	}
	return nil, fmt.Errorf("looking for %s: the listing does not end after %d empty pages: check the endpoint, and "+
		"proxies on the way to it", path, maxLookPages)
}

// explain finds the keys of which the feed has an event that is not delivered. The state is read behind the topics, so
// what it does not cover was not in them.
func (c *census) explain(ctx context.Context) error {
	state, err := c.v.cluster.state(ctx, c.v.state.topic)
	if err != nil || state == nil || state.Frontier == nil {
		return err
	}
	byPath := map[string][]*difference{}
	for _, x := range c.differences {
		x.pending = false
		byPath[x.path] = append(byPath[x.path], x)
	}
	if len(byPath) == 0 {
		return nil
	}
	skip := func(*source.DamageError, source.Loss) error { return nil } // the other checks report damage
	for o, err := range readAhead(ctx, c.v.Feed.Source, state.Frontier.Completed) {
		if err != nil {
			return err
		}
		for i, r := range o.shards {
			if err := blocks(ctx, r, skip, func(b *source.Batch) error {
				covered := status.Covers(state, o.manifest.Segment, o.manifest.Shards[i], b.Next)
				for i := range b.Events {
					for _, x := range byPath[envelope.PathOf(b.Events[i].Subject)] {
						x.pending = x.pending || !covered
					}
				}
				return nil
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
