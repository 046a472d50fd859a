package pipeline

import (
	"context"
	"errors"
	"net/url"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/crash"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// Rows says how a listing becomes rows.
type Rows struct {
	ID      string             // of the scan
	Updated envelope.Timestamp // of all rows; zero: each has the time of its page
	Account string             // URL of the account, with a slash at its end
}

// rowsPerBlock is how many rows of a page are encoded together. Blocks of events are of this size.
const rowsPerBlock = 500

// Lister makes steps of a listing, calls emit for each, and returns when it is over. Its steps are as those of
// inventory.Walk.
type Lister func(ctx context.Context, emit func(context.Context, *inventory.Step) error) error

// List makes blocks of the steps of a listing. A Block of it has a Step, and no shard.
func (p *Pipeline) List(ctx context.Context, d *Pass, rows Rows, list Lister) *Run {
	p.memory.passing.Add(1)
	out := make(chan *Block, prefetch)
	r := &Run{Blocks: out, p: p}
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	e := &stepEncoder{p: p, pass: d, rows: rows, out: out}
	crash.Go(ctx, "listing", func() {
		defer close(out)
		list := crash.Try(ctx, "listing", func() error { return list(r.ctx, e.step) })
		if err := list(); err != nil { // I8: known before the channel is closed
			r.cancel(err)
		}
	})
	return r
}

// stepEncoder encodes the steps of a listing. Several goroutines use it.
type stepEncoder struct {
	p    *Pipeline
	pass *Pass
	rows Rows
	out  chan<- *Block
}

// step sends the blocks of a step, in order. It waits for memory, and so holds up the listing.
func (e *stepEncoder) step(ctx context.Context, s *inventory.Step) error {
	if s.Listed == nil || len(s.Listed.Blobs) == 0 {
		return e.send(ctx, s, nil)
	}
	for left := s.Listed.Blobs; len(left) > 0; {
		part := left[:min(rowsPerBlock, len(left))]
		left = left[len(part):]
		of := *s
		of.Listed = &inventory.Listed{Blobs: part, Last: s.Listed.Last && len(left) == 0, More: len(left) > 0}
		if err := e.send(ctx, &of, part); err != nil {
			return err
		}
	}
	return nil
}

func (e *stepEncoder) send(ctx context.Context, s *inventory.Step, blobs []inventory.Blob) error {
	b := e.p.pool.get(0)
	b.Step = s
	began := time.Now()
	err := e.pass.Host.Retry(ctx, func(ctx context.Context) error {
		b.dead = b.dead[:0]
		err := e.p.encodeRows(ctx, e.pass, &e.rows, b, blobs)
		var large *TooLargeError
		if errors.As(err, &large) {
			return e.pass.Host.TooLarge(ctx, err)
		}
		return err
	})
	if err != nil {
		return err
	}
	b.Encoding = Between(began, time.Now())
	if err := e.p.memory.acquire(ctx, b); err != nil {
		return err
	}
	select {
	case e.out <- b:
		return nil
	case <-ctx.Done():
		e.p.memory.release(b)
		return context.Cause(ctx)
	}
}

// encodeRows fills the records of b with the rows of blobs.
func (p *Pipeline) encodeRows(ctx context.Context, d *Pass, rows *Rows, b *Block, blobs []inventory.Blob) error {
	b.events.Events = b.events.Events[:0]
	b.reset(len(blobs))
	scan := envelope.Scan{ID: rows.ID, Updated: rows.Updated, Served: b.Step.Served}
	if scan.Updated == (envelope.Timestamp{}) {
		scan.Updated.Wall = scan.Served.UnixNano()
	}
	e := &encoding{pass: d, set: &p.set, most: p.BlockBytes(), b: b, scan: &scan}
	lines := rows.lines(b.Step.Container)
	var ev source.Event
	for i := range blobs {
		lines.event(&ev, &blobs[i])
		err := e.event(ctx, &ev, source.Position{Index: i})
		var fault *RowError
		if errors.As(err, &fault) && p.set.DeadLetter != "" {
			err = b.keepRow(fault, &ev, rows.ID, b.Step.Container, d.partSize())
		}
		if err != nil {
			return err
		}
	}
	b.finish(p.set.DeadLetter)
	b.Counts.Rows = b.Counts.Emitted
	return nil
}

// lines fills events with what a listing of one container says.
type lines struct {
	subject, url   string    // that of a blob begins with them
	modified       time.Time // of the line before, which the next one may share
	modifiedAsText string
}

func (r *Rows) lines(container string) lines {
	return lines{subject: envelope.SubjectOf(container, ""), url: r.Account + container + "/"}
}

func (l *lines) event(ev *source.Event, b *inventory.Blob) {
	if l.modifiedAsText == "" || !b.Modified.Equal(l.modified) {
		l.modified, l.modifiedAsText = b.Modified, b.Modified.UTC().Format("2006-01-02T15:04:05.0000000Z")
	}
	*ev = source.Event{
		Subject: l.subject + b.Name, URL: l.url + escape(b.Name),
		ETag: b.ETag, ContentType: b.ContentType, ContentLength: b.Length, HasContentLength: true,
		BlobType: b.BlobType, BlobTier: b.Tier, BlobVersion: b.Version,
		EventTime: l.modifiedAsText,
	}
}

// escape writes a name as URLs have it. Slashes stay.
func escape(name string) string {
	for i := range len(name) {
		c := name[i]
		if (c|' ' < 'a' || c|' ' > 'z') && (c < '0' || c > '9') && c != '/' && c != '-' && c != '.' && c != '_' {
			return strings.TrimPrefix((&url.URL{Path: "/" + name}).EscapedPath(), "/")
		}
	}
	return name // it has nothing to escape, like most
}

// Gone is a blob that the account does not have.
type Gone struct {
	Container, Name string
	Served          time.Time // when the service said so
}

// Delete makes a block of the deletions of blobs, for one topic. A deletion goes to the partition of its key by the
// frontier's counts, as an event of the blob does (I5). Its key may have records in another partition, from before the
// topic got more: a deletion there would be unordered with the next event of the blob.
func (p *Pipeline) Delete(ctx context.Context, d *Pass, rows Rows, topic string, gone []Gone) (*Block, error) {
	b := p.pool.get(0)
	b.Swept = true
	b.events.Events = b.events.Events[:0]
	b.reset(len(gone))
	var ev source.Event
	for i := range gone {
		g := &gone[i]
		scan := envelope.Scan{ID: rows.ID, Updated: envelope.Timestamp{Wall: g.Served.UnixNano()}, Served: g.Served}
		e := &encoding{pass: d, set: &p.set, most: p.BlockBytes(), b: b, scan: &scan, gone: true}
		var err error
		if e.topic, err = d.Host.Topic(ctx, topic); err != nil {
			return nil, err
		}
		ev = source.Event{Subject: envelope.SubjectOf(g.Container, g.Name)}
		if err := e.append(&ev, source.Position{}); err != nil {
			return nil, err
		}
	}
	b.finish("")
	b.Counts.Rows = b.Counts.Emitted
	if err := p.memory.acquire(ctx, b); err != nil {
		return nil, err
	}
	return b, nil
}
