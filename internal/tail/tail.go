// Package tail prints the records that a bridge would write, as the feed grows, without Kafka.
//
// The records come from the engine's own pipeline, so they cannot differ from those of a bridge. Shards are read one
// after the other, so the output of a complete feed is always the same.
package tail

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/source"
)

// Options say what to print.
type Options struct {
	From  history.Target
	Once  bool // end where the feed ends now
	Limit int  // end after this number of records; 0: none
	// Print prints a record. Flush follows when no more are there for now.
	Print func(*kgo.Record) error
	Flush func() error
	Log   *slog.Logger
}

// Legible returns the settings with JSON in place of Avro, which can only be read with a registry's schemas.
func Legible(c *config.Config) *config.Config {
	l := *c
	l.Format, l.AvroTimestamps = "json", ""
	if c.KeyFormat == "avro" || c.Format == "avro" && c.KeyFormat == "" {
		l.KeyFormat = "json_object"
	}
	return &l
}

// Run prints the records of the feed that the settings name until ctx ends, or as the options say.
func Run(ctx context.Context, c *config.Config, o Options) error {
	b, err := setup.Options(c, setup.Observe{})
	if err != nil {
		return &plain.SettingsError{Problem: err.Error()}
	}
	setup.LimitMemory(&b, 1)
	t := &tail{Options: o, bridge: &b, topics: map[string]*pipeline.Topic{}, filter: b.Feed.Filter}
	t.pipe = pipeline.New(pipeline.Settings{
		Feed: b.Feed.Source, SkipGaps: b.Feed.SkipGaps, Once: o.Once, Log: o.Log, MemoryBytes: b.Pace.BufferBytes,
		Events: b.Records.Events, Partition: b.Records.Partition, Topics: b.Topics.Names,
		DeadLetter: b.Topics.DeadLetter,
	})
	after, from := o.From.Begin()
	begin := o.From.String()
	if at := o.From.Time(); !at.IsZero() {
		begin = at.Format(time.RFC3339) // people do not read the nanoseconds of an "updated"
	}
	if o.Once {
		o.Log.Info("reading the feed to its end", "feed", b.Feed.ID, "from", begin)
	} else {
		o.Log.Info("reading the feed; new records appear as Azure publishes them", "feed", b.Feed.ID, "from", begin)
	}
	t.filter.From = from
	err = t.segments(ctx, after)
	end := o.Log
	if hint := t.nothing(c); hint != "" {
		end = end.With("hint", hint)
	}
	if o.Once && err == nil {
		var newest source.Segment
		newest, err = t.newest(ctx)
		end = end.With("newest_segment", newest.String())
	}
	limited := errors.Is(err, errLimit)
	if !limited { // else a block is read, and its first events are printed
		end = end.With("events", t.read)
	}
	if limited || ctx.Err() != nil {
		err = nil
	}
	if failed := o.Flush(); err == nil { // what has failed before, fails again
		err = failed
	}
	if err == nil {
		end.Info("stopped", "records", t.printed)
	}
	return err
}

// nothing says why no event has become a record, "" if one has.
func (t *tail) nothing(c *config.Config) string {
	if t.printed > 0 || t.read == 0 {
		return ""
	}
	var set []string
	for _, name := range []string{"CONTAINERS", "PREFIXES", "SUFFIXES", "EVENT_TYPES", "BLOB_TYPES", "EVENTS"} {
		if c.From(name) != "default" {
			set = append(set, config.Prefix+"_"+name)
		}
	}
	if set == nil {
		return "no event is of a change from --from on"
	}
	return "no event has become a record: check --from and " + strings.Join(set, ", ")
}

// tail is a Run at work. It is the pipeline's host. Only one shard is read at a time, by one goroutine that calls the
// host and ends before the next one starts; the caller of Run prints meanwhile. So nothing needs a lock.
type tail struct {
	Options
	bridge  *bridge.Options
	pipe    *pipeline.Pipeline
	filter  envelope.Filter
	topics  map[string]*pipeline.Topic
	reached bool // the store has answered
	last    source.Segment
	read    int // events
	printed int
}

var _ pipeline.Host = (*tail)(nil)

var errLimit = errors.New("the limit is reached")

// segments prints the segments after a given one.
func (t *tail) segments(ctx context.Context, after source.Segment) error {
	for {
		next, err := t.next(ctx, after)
		if err != nil {
			return err
		}
		if next != (source.Segment{}) {
			if err := t.segment(ctx, next); err != nil {
				return err
			}
			after, t.last = next, next
			continue
		}
		if t.Once {
			return nil
		}
		if err := pause.For(ctx, t.bridge.Pace.PollInterval); err != nil {
			return err
		}
	}
}

// newest returns the newest segment of the feed.
func (t *tail) newest(ctx context.Context) (newest source.Segment, err error) {
	if t.last != (source.Segment{}) {
		return t.last, nil
	}
	for newest, err = range t.bridge.Feed.Source.Segments(ctx, source.Segment{}) {
		if err != nil {
			break
		}
	}
	return newest, err
}

// next returns the segment after a given one, or the zero segment.
func (t *tail) next(ctx context.Context, after source.Segment) (next source.Segment, err error) {
	err = t.Retry(ctx, func(ctx context.Context) error {
		for seg, err := range t.bridge.Feed.Source.Segments(ctx, after) {
			next = seg
			return err
		}
		return nil
	})
	t.reached = t.reached || err == nil
	return next, err
}

// segment prints a segment to its end; with Once, to where it ends now.
func (t *tail) segment(ctx context.Context, seg source.Segment) error {
	readers := map[int]*source.ShardReader{}
	for {
		// I7: first the status, then the listings of the shards.
		var m source.Manifest
		err := t.Retry(ctx, func(ctx context.Context) (err error) {
			m, err = t.bridge.Feed.Source.Manifest(ctx, seg)
			return err
		})
		if err != nil {
			return err
		}
		complete := m.Finalized
		for _, shard := range m.Shards {
			if readers[shard] == nil {
				readers[shard] = t.bridge.Feed.Source.Shard(m, shard, source.ShardPosition{})
			}
			stays, err := t.shard(ctx, m, shard, readers)
			if err != nil {
				return err
			}
			complete = complete && !stays
		}
		if complete || t.Once {
			return nil
		}
		if err := pause.For(ctx, t.bridge.Pace.PollInterval); err != nil {
			return err
		}
	}
}

// shard prints a shard to the end of its listing. Stays is true if it could not.
func (t *tail) shard(
	ctx context.Context, m source.Manifest, shard int, readers map[int]*source.ShardReader,
) (stays bool, err error) {
	backlog := new(pipeline.Backlog)
	backlog.Reset()
	run := t.pipe.Start(ctx, &pipeline.Pass{
		Manifest: m, Filter: t.filter, Limit: math.MaxInt32, Backlog: backlog, Host: t,
	}, []int{shard}, readers, t.failed)
	defer run.Close()
	for b := range run.Blocks {
		t.read += b.Counts.Read
		for i := range b.Records {
			if err := t.Print(&b.Records[i]); err != nil {
				return false, err
			}
			if t.printed++; t.printed == t.Limit {
				return false, errLimit
			}
		}
		t.pipe.Reuse(b)
		if len(run.Blocks) == 0 { // the next one may be long in coming
			if err := t.Flush(); err != nil {
				return false, err
			}
		}
	}
	return run.Stays(), run.Err()
}

func (t *tail) failed(err error) {
	t.Log.Warn("reading the feed failed; retrying", "error", err)
}

// Topic returns a topic without partitions: nothing is sent.
func (t *tail) Topic(ctx context.Context, name string) (*pipeline.Topic, error) {
	if topic := t.topics[name]; topic != nil {
		return topic, nil
	}
	e, err := t.bridge.Records.Encoder(ctx, name)
	if err != nil {
		return nil, &pipeline.EncoderError{Err: err}
	}
	t.topics[name] = &pipeline.Topic{Name: name, Encoder: e, Partitions: 1}
	return t.topics[name], nil
}

// Known says that there are no topics to create.
func (t *tail) Known(string) bool { return true }

// Prepare does nothing, for the same reason.
func (t *tail) Prepare(context.Context, []string) {}

const (
	onceAttempts = 4 // of a read, if the tail must end
	firstDelay   = 200 * time.Millisecond
)

// Retry retries a failure until ctx ends. The first requests must succeed, since their failures are mostly mistakes in
// the settings.
func (t *tail) Retry(ctx context.Context, f func(context.Context) error) error {
	r := pause.Retries{First: firstDelay, Most: t.bridge.Pace.PollInterval, Failed: t.failed,
		Lasting: func(err error) bool {
			return !t.reached || errors.As(err, new(*history.GapError)) || errors.As(err, new(*pipeline.StayError))
		}}
	if t.Once {
		r.Limit = onceAttempts
	}
	return r.Do(ctx, f)
}

// TooLarge returns err: a topic may take larger records, but nobody knows here.
func (t *tail) TooLarge(_ context.Context, err error) error { return err }

// Lost returns the loss of a chunk.
func (t *tail) Lost(ctx context.Context, seg source.Segment, chunk string) error {
	for oldest, err := range t.bridge.Feed.Source.Segments(ctx, source.Segment{}) {
		if err != nil {
			return err
		}
		return &history.GapError{At: seg, Chunk: chunk, Oldest: oldest}
	}
	return fmt.Errorf("reading %s: %w", chunk, source.ErrNotFound)
}

// Printer writes records, one a line.
type Printer struct {
	JSON    bool // a document a line; else key and value, as Kafka's console consumer prints them
	Headers bool
	TextKey bool   // keys are no JSON
	Letters string // topic whose values are no JSON

	out *bufio.Writer
}

// To sets where to print.
func (p *Printer) To(w io.Writer) { p.out = bufio.NewWriterSize(w, 64<<10) }

// Flush writes what is buffered.
func (p *Printer) Flush() error { return p.out.Flush() }

// Print prints a record.
func (p *Printer) Print(r *kgo.Record) error {
	if p.JSON {
		return p.document(r)
	}
	if p.Headers {
		for i, h := range r.Headers {
			if i > 0 {
				_ = p.out.WriteByte(',') // the writer keeps its error
			}
			_, _ = p.out.WriteString(oneLine.Replace(h.Key + ":" + string(h.Value)))
		}
		_ = p.out.WriteByte('\t')
	}
	p.text(r.Key)
	_ = p.out.WriteByte('\t')
	p.text(r.Value)
	return p.out.WriteByte('\n')
}

// oneLine escapes what ends a column or a line.
var oneLine = strings.NewReplacer("\n", `\u000a`, "\t", `\u0009`)

func (p *Printer) text(b []byte) {
	if b == nil {
		b = []byte("null")
	}
	_, _ = oneLine.WriteString(p.out, string(b))
}

// document prints a record as JSON. A value that is not JSON is a string; so is an empty one.
func (p *Printer) document(r *kgo.Record) error {
	letter := r.Topic == p.Letters
	doc := struct {
		Topic   string            `json:"topic"`
		Time    time.Time         `json:"time"`
		Key     json.RawMessage   `json:"key"`
		Value   json.RawMessage   `json:"value"`
		Headers map[string]string `json:"headers,omitempty"`
	}{Topic: r.Topic, Time: r.Timestamp.UTC()}
	var err error
	if doc.Key, err = raw(r.Key, p.TextKey || letter); err != nil {
		return err
	}
	if doc.Value, err = raw(r.Value, letter); err != nil {
		return err
	}
	if p.Headers {
		doc.Headers = map[string]string{}
		for _, h := range r.Headers {
			doc.Headers[h.Key] = string(h.Value)
		}
	}
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}

func raw(b []byte, text bool) (json.RawMessage, error) {
	switch {
	case b == nil:
		return json.RawMessage("null"), nil
	case text, len(b) == 0:
		return json.Marshal(string(b))
	}
	return b, nil
}
