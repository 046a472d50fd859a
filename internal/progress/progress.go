// Package progress writes what an instance does to its standard error: how far it is, as one live line on a terminal,
// otherwise as a log line now and then, and the log, which it keeps quiet: what repeats is counted instead of written
// again.
package progress

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"
	"unicode/utf8"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
)

// Display is a bridge.Observer that shows what the bridge commits.
type Display struct {
	all   *Display // of all bridges; nil unless this is of one of many
	log   *slog.Logger
	limit *Limiter // nil for one of many, whose log is that of all
	line  *line    // on a terminal, nil elsewhere
	paint bool     // the line shows colours
	every time.Duration
	quiet bool // of all bridges: each reports for itself

	look func() *status.Status // at the bridge; nil: nobody looks
	once bool                  // the run is to end by itself

	events, records atomic.Int64
	history, hint   atomic.Bool // are logged
	interrupted     atomic.Bool
	verdict         string    // code, as logged last; of the goroutine that reports, as is what follows
	waited          time.Time // when the log has said last that the run waits

	mu        sync.Mutex
	began     time.Time // of the first transaction; until then, of the run
	delivers  bool      // there was a transaction
	segment   string
	shown     time.Time
	shownSeen int64
	// shownWritten is the records that were written by then.
	shownWritten int64
	moved        time.Time // when the last report had something new, or the start
}

// New returns the log and the display of progress that suit stderr, which may be a terminal.
func New(c *config.Config, stderr io.Writer) (*slog.Logger, *Display) {
	f, ok := stderr.(*os.File)
	return start(c, stderr, ok && Terminal(f))
}

// ForMany returns the log of many bridges, and a Display that counts the events of all: Of makes one for each. There
// is no live line, since a line has room for one bridge.
func ForMany(c *config.Config, stderr io.Writer) (*slog.Logger, *Display) {
	log, p := start(c, stderr, false)
	p.quiet = true
	return log, p
}

// Of returns the progress of one of many bridges.
func (p *Display) Of(bridge string) (*slog.Logger, *Display) {
	log := p.log.With("bridge", bridge)
	now := time.Now()
	return log, &Display{all: p, log: log, every: p.every, shown: now, moved: now}
}

func start(c *config.Config, stderr io.Writer, live bool) (*slog.Logger, *Display) {
	now := time.Now()
	p, out := &Display{every: c.Tuning.ReportInterval, began: now, shown: now, moved: now}, stderr
	if live {
		p.line, p.every = &line{to: stderr}, time.Second
		stderr = p.line
	}
	stderr = plain.NewWriter(stderr) // never torn: a handler writes whole lines
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // validated
	opts := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewJSONHandler(stderr, opts)
	if f, ok := out.(*os.File); c.LogFormat == "text" || c.LogFormat == "auto" && ok && Terminal(f) {
		h = slog.NewTextHandler(stderr, opts)
	}
	p.limit = Limit(h, c.Tuning.LogRepeat)
	p.log = slog.New(p.limit)
	return p.log, p
}

// Colour gives the last line a colour.
func (p *Display) Colour() { p.paint = true }

// Once says that the run is to end by itself. Call it before Show.
func (p *Display) Once() { p.once = true }

// Look sets what looks at the bridge: its verdict and progress, and a hint at its settings. Call it before Show.
func (p *Display) Look(look func() *status.Status) { p.look = look }

// judge looks at the bridge, and logs the first hint.
func (p *Display) judge() *status.Status {
	if p.look == nil {
		return new(status.Status)
	}
	s := p.look()
	if s.Hint != "" && !p.hint.Swap(true) {
		p.log.Warn("the settings may be wrong", "hint", s.Hint)
	}
	return s
}

// Terminal reports whether a file is a terminal.
func Terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Colours reports whether w is a terminal whose user wants colours, by the environment (https://no-color.org).
func Colours(env config.Env, w io.Writer) bool {
	f, ok := w.(*os.File)
	return ok && Terminal(f) && env["TERM"] != "dumb" && env["NO_COLOR"] == ""
}

// Events returns the number of events whose delivery is committed.
func (p *Display) Events() int64 { return p.events.Load() }

// Records returns the number of committed records.
func (p *Display) Records() int64 { return p.records.Load() }

var (
	_ bridge.CommitObserver     = (*Display)(nil)
	_ bridge.CompletionObserver = (*Display)(nil)
	_ bridge.HistoryObserver    = (*Display)(nil)
	_ bridge.FailureObserver    = (*Display)(nil)
)

// Committed implements bridge.CommitObserver.
func (p *Display) Committed(c bridge.Commit) {
	p.count(c)
	if p.all != nil {
		p.all.count(c)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	p.segment = c.Segment.String()
}

func (p *Display) count(c bridge.Commit) {
	p.events.Add(int64(c.Read))
	p.records.Add(int64(c.Emitted))
	p.mu.Lock()
	defer p.mu.Unlock()
	if !p.delivers { // what was before may be the wait for the group
		p.began, p.delivers = time.Now().Add(-c.Took), true
	}
}

// took returns how long the bridge has delivered.
func (p *Display) took() time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	return time.Since(p.began)
}

// Completed implements bridge.CompletionObserver.
func (p *Display) Completed(c bridge.Completion) {
	p.log.Debug("segment complete", "segment", c.Segment.String(), "resolved", c.Resolved.String())
}

// History implements bridge.HistoryObserver. The log gets the first report only: metrics show the others.
func (p *Display) History(h bridge.History) {
	if p.history.Swap(true) {
		return
	}
	p.log.Info("history before the bridge's position", "headroom_seconds", int64(h.Headroom.Seconds()))
}

// Ended implements bridge.TransactionObserver.
func (p *Display) Ended(t bridge.Transaction) {
	p.log.Debug("transaction ended", "lease", t.Lease, "segment", t.Segment, "events", t.Read, "records", t.Emitted,
		"markers", t.Markers, "bytes", t.Bytes, "committed", t.Err == nil, "read", t.Reading.Busy.String(),
		"encode", t.Encoding.Busy.String(), "publish", t.Publishing.Busy.String(), "commit", t.Committing.Busy.String())
}

// Failed implements bridge.FailureObserver.
func (p *Display) Failed(lease int32, err error) {
	if lease < 0 { // the instance, or its group
		p.log.Warn("retrying", "error", err)
		return
	}
	p.log.Warn("retrying", "lease", lease, "error", err)
}

// Show reports until ctx ends. While nothing moves the log stays quiet.
func (p *Display) Show(ctx context.Context) {
	t := time.NewTicker(p.every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			if p.limit != nil {
				p.limit.Flush(ctx, false)
			}
			if !p.quiet {
				p.report()
			}
		case <-ctx.Done():
			return
		}
	}
}

func (p *Display) report() {
	s := p.judge()
	verdict, now := s.Verdict, time.Now()
	r := p.since(now)
	if p.once && now.Sub(r.last) >= patience && now.Sub(p.waited) >= patience {
		p.waited = now
		p.log.Warn("run --once still waits", "verdict", verdict.Text, "seconds", int64(now.Sub(r.last).Seconds()),
			"hint", "it ends when everything is delivered; Ctrl-C or SIGTERM ends it now")
	}
	lag := s.Lag.Late()
	if p.line != nil {
		text := fmt.Sprintf("%8s/s  segment %s  lag %s", plain.Number(int64(r.rate)), cmp.Or(r.segment, "-"), lag)
		if verdict.Text != "" && verdict.Text != status.AllWell {
			if text = verdict.Text; utf8.RuneCountInString(text) > maxLine { // the log above has it whole
				text = fmt.Sprintf("%.*s…", maxLine-1, text)
			}
		}
		p.line.show(fmt.Sprintf("%s%11s events  %s", bar(s.Progress), plain.Number(r.events), text))
		return
	}
	changed := verdict.Code != p.verdict
	if !r.moved && !changed {
		return
	}
	p.verdict = verdict.Code
	level := slog.LevelInfo
	if changed && verdict.Bad() {
		level = slog.LevelWarn
	}
	attrs := []any{"verdict", verdict.Text}
	if verdict.Remedy != "" {
		attrs = append(attrs, "hint", verdict.Remedy)
	}
	p.log.Log(context.Background(), level, "progress", append(attrs, "events", r.events,
		"events_per_second", int64(r.rate), "segment", r.segment, "lag", lag)...)
}

// period is what came between two reports.
type period struct {
	events  int64 // in all
	rate    float64
	last    time.Time // when something came last, or the start
	moved   bool      // also by a scan, which writes records, and reads no events
	segment string
}

// since returns what came since the last call. Commits take the lock, so nothing is written under it.
func (p *Display) since(now time.Time) (r period) {
	p.mu.Lock()
	defer p.mu.Unlock()
	events, written := p.events.Load(), p.records.Load()
	r = period{events: events, rate: float64(events-p.shownSeen) / now.Sub(p.shown).Seconds(), segment: p.segment,
		moved: events != p.shownSeen || written != p.shownWritten}
	if r.moved {
		p.moved = now
	}
	r.last = p.moved
	p.shown, p.shownSeen, p.shownWritten = now, events, written
	return r
}

// patience is how long a run --once may deliver nothing before the log says that it waits.
const patience = time.Minute

// maxLine is how much of a verdict is on a terminal: a line that breaks could not be written over.
const maxLine = 75

// bar draws the share of a catch-up or a scan that is done; "" if it is unknown.
func bar(p *status.Progress) string {
	const cells = 20
	if p == nil || p.Share == nil {
		return ""
	}
	done := min(max(int(*p.Share*cells), 0), cells)
	return "[" + strings.Repeat("#", done) + strings.Repeat("-", cells-done) + "]"
}

// Finish ends the display and keeps its last line. Err is how the run has ended.
func (p *Display) Finish(err error) {
	p.judge() // a short run has had no report
	if p.limit != nil {
		if err == nil && !p.interrupted.Load() { // everything is delivered
			p.limit.Recovered()
		}
		p.limit.Flush(context.Background(), true)
	}
	if p.line != nil {
		p.line.end()
	}
}

// Interrupted says that a signal stops the bridge, so that there may be more to deliver.
func (p *Display) Interrupted() { p.interrupted.Store(true) }

// Stopped reports what was delivered. At the end of a run --once, it says what to do next.
func (p *Display) Stopped(once bool) {
	events, took := p.Events(), p.took()
	rate := int64(float64(events) / max(took, time.Millisecond).Seconds())
	records, seconds := p.Records(), float64(took.Milliseconds())/1000
	next, why := "bridge verify --feed", " proves that the topic has every event"
	switch {
	case p.interrupted.Load():
		next, why = "bridge run --once", " delivers the rest: this run was interrupted"
	case events == 0: // it may be at a place that the feed does not have
		next, why = "bridge status", " says how far the bridge is"
	}
	if once {
		p.log.Info("stopped", "events", events, "records", records, "seconds", seconds, "events_per_second", rate,
			"hint", next+why)
	} else {
		p.log.Info("stopped", "events", events, "records", records, "seconds", seconds, "events_per_second", rate)
	}
	if p.line != nil && once {
		text := p.Delivered() + " Next: " + next
		if p.interrupted.Load() {
			text = "Interrupted. " + text
		}
		if p.paint {
			text = plain.Paint(text)
		}
		fmt.Fprintf(p.line.to, "\n%s\n", text)
	}
}

// Delivered says for people what was delivered so far, and how fast.
func (p *Display) Delivered() string {
	took := max(p.took(), 10*time.Millisecond)
	span := plain.Span(took)
	if took < 10*time.Second { // the number must agree with the rate
		span = fmt.Sprintf("%.2fs", took.Seconds())
	}
	return fmt.Sprintf("Delivered %s as %s in %s (%s events/s).", plain.Count(p.Events(), "event"),
		plain.Count(p.Records(), "record"), span, plain.Number(int64(float64(p.Events())/took.Seconds())))
}

// line is the live line on a terminal. It has a lock of its own: a terminal may block, and no commit waits for it.
type line struct {
	mu    sync.Mutex
	to    io.Writer
	width int // of what is shown; 0: nothing is
}

func (l *line) show(text string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	fmt.Fprintf(l.to, "\r%-*s", l.width, text)
	l.width = utf8.RuneCountInString(text)
}

// end keeps what is shown.
func (l *line) end() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.width > 0 {
		fmt.Fprintln(l.to)
		l.width = 0
	}
}

// Write writes lines of the log over the live line, which returns with the next report.
func (l *line) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.width > 0 {
		fmt.Fprintf(l.to, "\r%-*s\r", l.width, "")
		l.width = 0
	}
	return l.to.Write(b)
}
