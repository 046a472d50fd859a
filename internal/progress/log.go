package progress

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"blobfeed/internal/plain"
)

// maxKinds bounds the memory: a record of one more kind is passed on.
const maxKinds = 1000

// Limiter is a handler that passes a warning or error on once in an interval. The next one says how often it was
// meant to be written since, as "repeated". Records are the same if message and attributes are, but for numbers,
// for where in the feed it was, and for what differs from one attempt to the next: times, request ids, local ports.
// What With adds always tells them apart, numbers too. In a catch-up over much that is late or damaged each
// transaction has something to say.
type Limiter struct {
	next   slog.Handler
	prefix string // of the identity: what With added
	shared *kinds
}

type kinds struct {
	every time.Duration

	mu   sync.Mutex
	seen map[string]*kind

	writing sync.Mutex
	written time.Time // of the last line
}

// write passes a record on. Goroutines that log at the same moment get here in any order, and the times of a log must
// not run backwards: a record that comes late has the time of the line before.
func (k *kinds) write(ctx context.Context, next slog.Handler, r slog.Record) error {
	k.writing.Lock()
	defer k.writing.Unlock()
	switch {
	case r.Time.IsZero(): // a handler leaves it out
	case r.Time.Before(k.written):
		r.Time = k.written
	default:
		k.written = r.Time
	}
	return next.Handle(ctx, r)
}

type kind struct {
	at       time.Time // when it was passed on
	repeated int       // since
	last     slog.Record
	next     slog.Handler
}

// Limit returns a Limiter in front of next. Every 0 passes everything on.
func Limit(next slog.Handler, every time.Duration) *Limiter {
	return &Limiter{next: next, shared: &kinds{every: every, seen: map[string]*kind{}}}
}

// Enabled implements slog.Handler.
func (l *Limiter) Enabled(ctx context.Context, level slog.Level) bool {
	return l.next.Enabled(ctx, level)
}

// Handle implements slog.Handler.
func (l *Limiter) Handle(ctx context.Context, r slog.Record) error {
	r = clipped(r)
	if r.Level < slog.LevelWarn || l.shared.every == 0 {
		return l.shared.write(ctx, l.next, r)
	}
	id := l.prefix + identity(r)
	l.shared.mu.Lock()
	k, now := l.shared.seen[id], time.Now()
	switch {
	case k == nil && len(l.shared.seen) >= maxKinds:
		l.shared.mu.Unlock()
		return l.shared.write(ctx, l.next, r)
	case k == nil:
		k = &kind{}
		l.shared.seen[id] = k
	case now.Sub(k.at) < l.shared.every:
		k.repeated++
		k.last, k.next = r.Clone(), l.next
		l.shared.mu.Unlock()
		return nil
	}
	repeated := k.repeated
	k.at, k.repeated = now, 0
	l.shared.mu.Unlock()
	return l.shared.write(ctx, l.next, counted(r, repeated))
}

// Flush writes what repeated and whose interval is over, and forgets what does not repeat any more. All: at the end,
// whatever repeated.
func (l *Limiter) Flush(ctx context.Context, all bool) {
	l.shared.mu.Lock()
	var due []*kind
	now := time.Now()
	for id, k := range l.shared.seen {
		if !all && now.Sub(k.at) < l.shared.every {
			continue
		}
		if k.repeated == 0 {
			delete(l.shared.seen, id)
			continue
		}
		due = append(due, &kind{repeated: k.repeated, last: k.last, next: k.next})
		k.at, k.repeated = now, 0
	}
	l.shared.mu.Unlock()
	slices.SortFunc(due, func(a, b *kind) int { return a.last.Time.Compare(b.last.Time) })
	for _, k := range due {
		// The line itself is one of them. An error is dropped: there is no other place to report it.
		r := counted(k.last, k.repeated-1).Clone()
		if !r.Time.IsZero() { // written now: the times of a log must not run backwards
			r.AddAttrs(slog.Time("last", r.Time))
			r.Time = now
		}
		_ = l.shared.write(ctx, k.next, r)
	}
}

// Recovered forgets what was retried: there is nothing to report on it any more.
func (l *Limiter) Recovered() {
	l.shared.mu.Lock()
	defer l.shared.mu.Unlock()
	maps.DeleteFunc(l.shared.seen, func(_ string, k *kind) bool {
		return k.repeated > 0 && strings.Contains(k.last.Message, "retrying")
	})
}

func counted(r slog.Record, repeated int) slog.Record {
	if repeated == 0 {
		return r
	}
	r = r.Clone()
	r.AddAttrs(slog.Int("repeated", repeated))
	return r
}

// WithAttrs implements slog.Handler.
func (l *Limiter) WithAttrs(attrs []slog.Attr) slog.Handler {
	return &Limiter{next: l.next.WithAttrs(attrs), prefix: l.prefix + fmt.Sprint(attrs), shared: l.shared}
}

// WithGroup implements slog.Handler.
func (l *Limiter) WithGroup(name string) slog.Handler {
	return &Limiter{next: l.next.WithGroup(name), prefix: l.prefix + name + ".", shared: l.shared}
}

// passing is what differs between attempts at the same.
var passing = regexp.MustCompile(`[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}` + // request ids
	`|\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?` + // times
	`|:\d+->`) // local ports

// places are the attributes that say where in the feed something was, and what was wrong just there.
var places = []string{"segment", "first_position", "first_reason"}

func identity(r slog.Record) string {
	var b strings.Builder
	fmt.Fprint(&b, r.Level, r.Message)
	r.Attrs(func(a slog.Attr) bool {
		switch a.Value.Kind() {
		case slog.KindInt64, slog.KindUint64, slog.KindFloat64: // the lease, and counts
		default:
			if !slices.Contains(places, a.Key) {
				fmt.Fprint(&b, "|", a.Key, "=", a.Value)
			}
		}
		return true
	})
	return passing.ReplaceAllString(b.String(), "_")
}

// clipped returns r with its long texts cut, and without secrets: an error may hold what a server, or one event, has to
// say. What repeats is kept until its next line, so it is cut before.
func clipped(r slog.Record) slog.Record {
	var attrs []slog.Attr
	cut := false
	r.Attrs(func(a slog.Attr) bool {
		text := ""
		switch v := a.Value.Any().(type) {
		case string:
			text = v
		case error:
			text = v.Error()
		}
		if shown := plain.Clip(text); shown != text {
			cut = true
			a.Value = slog.StringValue(shown)
		}
		attrs = append(attrs, a)
		return true
	})
	if !cut {
		return r
	}
	c := slog.NewRecord(r.Time, r.Level, r.Message, r.PC)
	c.AddAttrs(attrs...)
	return c
}
