package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/config"
	"blobfeed/internal/logging"
	"blobfeed/internal/plain"
)

// progress tells a person how far the bridge is: one live line on a terminal, a log line now and then elsewhere.
type progress struct {
	bridge.NoObserver
	log     *slog.Logger
	limit   *logging.Limiter
	line    io.Writer // the terminal, nil elsewhere
	every   time.Duration
	started time.Time

	events, records, bytes, late atomic.Int64
	history                      atomic.Bool // was told

	mu        sync.Mutex
	segment   string
	last      time.Time // latest event time committed
	drained   bool
	width     int // of the line that stands on the terminal
	shown     time.Time
	shownSeen int64
}

// logs chooses the log's form and the progress display by what stderr is.
func logs(c *config.Config, stderr io.Writer) (*slog.Logger, *progress) {
	p := &progress{every: c.Tuning.ReportInterval, started: time.Now(), shown: time.Now()}
	if f, ok := stderr.(*os.File); ok && terminal(f) {
		p.line, p.every = stderr, time.Second
		stderr = (*clearing)(p)
	}
	stderr = plain.NewWriter(stderr) // never torn: a handler writes whole lines
	var level slog.Level
	_ = level.UnmarshalText([]byte(c.LogLevel)) // validated
	opts := &slog.HandlerOptions{Level: level}
	var h slog.Handler = slog.NewJSONHandler(stderr, opts)
	if c.LogFormat == "text" || c.LogFormat == "auto" && p.line != nil {
		h = slog.NewTextHandler(stderr, opts)
	}
	p.limit = logging.Limit(h, c.Tuning.LogRepeat, time.Now)
	p.log = slog.New(p.limit)
	return p.log, p
}

func terminal(f *os.File) bool {
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// Committed implements bridge.Observer.
func (p *progress) Committed(c bridge.Commit) {
	p.events.Add(int64(c.Read))
	p.records.Add(int64(c.Emitted))
	p.bytes.Add(int64(c.Bytes))
	p.late.Add(int64(c.Late))
	p.mu.Lock()
	defer p.mu.Unlock()
	p.segment, p.drained = c.Segment.String(), c.Drained
	if c.Last.After(p.last) {
		p.last = c.Last
	}
}

// Completed implements bridge.Observer.
func (p *progress) Completed(c bridge.Completion) {
	p.log.Debug("segment complete", "segment", c.Segment.String(), "resolved", c.Resolved.String())
	p.mu.Lock()
	defer p.mu.Unlock()
	p.drained = c.Last
}

// History implements bridge.Observer. It comes each minute or so: the first tells where a start finds itself, the others are
// what metrics are for.
func (p *progress) History(h bridge.History) {
	if p.history.Swap(true) {
		return
	}
	p.log.Info("history before the bridge's position", "headroom_seconds", int64(h.Headroom.Seconds()))
}

// Failed implements bridge.Observer.
func (p *progress) Failed(lease int32, err error) {
	if lease < 0 { // the instance, or its group
		p.log.Warn("trying again", "error", err)
		return
	}
	p.log.Warn("trying again", "lease", lease, "error", err)
}

// show reports until ctx ends. Where nothing moved the log stays quiet.
func (p *progress) show(ctx context.Context) {
	t := time.NewTicker(p.every)
	defer t.Stop()
	for {
		select {
		case <-t.C:
			p.limit.Flush(ctx, false)
			p.report()
		case <-ctx.Done():
			return
		}
	}
}

func (p *progress) report() {
	p.mu.Lock()
	defer p.mu.Unlock()
	seen, now := p.events.Load(), time.Now()
	rate := float64(seen-p.shownSeen) / now.Sub(p.shown).Seconds()
	moved := seen != p.shownSeen
	p.shown, p.shownSeen = now, seen
	lag := "none"
	if !p.drained && !p.last.IsZero() {
		lag = now.Sub(p.last).Round(time.Second).String()
	}
	if p.line == nil {
		if moved {
			p.log.Info("progress", "events", seen, "events_per_second", int64(rate), "segment", p.segment, "lag", lag)
		}
		return
	}
	text := fmt.Sprintf("%10d events  %8.0f/s  segment %s  lag %s", seen, rate, orDash(p.segment), lag)
	fmt.Fprintf(p.line, "\r%-*s", p.width, text)
	p.width = len(text)
}

// finish leaves the last line standing.
func (p *progress) finish() {
	p.limit.Flush(context.Background(), true)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.line != nil && p.width > 0 {
		fmt.Fprintln(p.line)
		p.width = 0
	}
}

func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return s
}

// clearing writes log lines to the terminal over the progress line, which comes back a second later.
type clearing progress

func (c *clearing) Write(b []byte) (int, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.width > 0 {
		fmt.Fprintf(c.line, "\r%-*s\r", c.width, "")
		c.width = 0
	}
	return c.line.Write(b)
}
