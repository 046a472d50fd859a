package logging

import (
	"bytes"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"
)

func TestLimit(t *testing.T) {
	var out bytes.Buffer
	now := time.Unix(0, 0)
	l := Limit(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "last" { // that of the log package, not of now
			return slog.Attr{}
		}
		return a
	}}), time.Minute, func() time.Time { return now })
	log := slog.New(l)
	wrote := func(want ...string) {
		t.Helper()
		if got := strings.TrimSpace(out.String()); got != strings.Join(want, "\n") {
			t.Errorf("after %s:\n%s\nwant:\n%s", now.Sub(time.Unix(0, 0)), got, strings.Join(want, "\n"))
		}
		out.Reset()
	}
	fail := func(lease int, text string) { log.Warn("trying again", "lease", lease, "error", errors.New(text)) }

	fail(1, "read tcp 10.0.0.1:41000->10.0.0.2:443: reset, request 0a0b0c0d-0000-1111-2222-333344445555 at "+
		"2026-01-31T12:00:00Z")
	wrote(
		`level=WARN msg="trying again" lease=1 error="read tcp 10.0.0.1:41000->10.0.0.2:443: reset, request 0a0b0c0d-0000-1111-2222-333344445555 at 2026-01-31T12:00:00Z"`,
	)
	fail(2, "read tcp 10.0.0.1:41001->10.0.0.2:443: reset, request 0a0b0c0d-9999-1111-2222-333344445555 at "+
		"2026-01-31T12:00:01.5Z")
	wrote()
	fail(1, "block at log/01/00000.avro:17")
	fail(1, "block at log/01/00000.avro:18")
	wrote(
		`level=WARN msg="trying again" lease=1 error="block at log/01/00000.avro:17"`,
		`level=WARN msg="trying again" lease=1 error="block at log/01/00000.avro:18"`,
	)
	for range 3 {
		log.Info("progress")
	}
	wrote("level=INFO msg=progress", "level=INFO msg=progress", "level=INFO msg=progress")
	log.With("topic", "a").Error("gone")
	log.With("topic", "b").Error("gone")
	log.WithGroup("g").Error("gone")
	wrote("level=ERROR msg=gone topic=a", "level=ERROR msg=gone topic=b", "level=ERROR msg=gone")

	for i := range 3 {
		log.Warn("came late", "lease", int32(i), "events", 10*i, "segment", fmt.Sprint("2026/01/0", i))
	}
	wrote(`level=WARN msg="came late" lease=0 events=0 segment=2026/01/00`)

	fail(1, "block at log/01/00000.avro:17")
	now = now.Add(time.Minute)
	fail(1, "block at log/01/00000.avro:17")
	wrote(`level=WARN msg="trying again" lease=1 error="block at log/01/00000.avro:17" repeated=1`)
	l.Flush(t.Context(), false)
	wrote(
		`level=WARN msg="trying again" lease=2 error="read tcp 10.0.0.1:41001->10.0.0.2:443: reset, request 0a0b0c0d-9999-1111-2222-333344445555 at 2026-01-31T12:00:01.5Z"`,
		`level=WARN msg="came late" lease=2 events=20 segment=2026/01/02 repeated=1`,
	)
	fail(1, "block at log/01/00000.avro:17")
	fail(1, "block at log/01/00000.avro:17")
	l.Flush(t.Context(), false)
	wrote()
	l.Flush(t.Context(), true)
	wrote(`level=WARN msg="trying again" lease=1 error="block at log/01/00000.avro:17" repeated=1`)
	now = now.Add(time.Hour)
	if l.Flush(t.Context(), false); len(l.shared.seen) > 0 {
		t.Errorf("%d kinds are remembered", len(l.shared.seen))
	}
}

// Whatever is logged, memory is bounded, and nothing is lost by that.
func TestLimitIsBounded(t *testing.T) {
	var out bytes.Buffer
	l := Limit(slog.NewTextHandler(&out, nil), time.Minute, time.Now)
	const lines = maxKinds + 100
	for i := range lines {
		slog.New(l).Warn("trying again", "error", fmt.Sprint("path ", i))
	}
	if n := strings.Count(out.String(), "\n"); n != lines || len(l.shared.seen) > maxKinds {
		t.Errorf("%d lines, %d kinds", n, len(l.shared.seen))
	}
}

// The times of a log do not run backwards: what is written later has the time of then, and that of its last record.
func TestFlushedRecordHasTheTimeOfNow(t *testing.T) {
	var out bytes.Buffer
	now := time.Date(2026, 1, 31, 12, 0, 0, 0, time.UTC)
	l := Limit(slog.NewJSONHandler(&out, nil), time.Minute, func() time.Time { return now })
	for range 3 {
		r := slog.NewRecord(now, slog.LevelWarn, "retrying", 0)
		if err := l.Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		now = now.Add(time.Second)
	}
	now = now.Add(time.Hour)
	out.Reset()
	l.Flush(t.Context(), false)
	if got := out.String(); !strings.Contains(got, `"time":"2026-01-31T13:00:03Z"`) ||
		!strings.Contains(got, `"last":"2026-01-31T12:00:02Z"`) {
		t.Error(got)
	}
}
