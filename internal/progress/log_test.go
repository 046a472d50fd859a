package progress

import (
	"bytes"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"log/slog"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestLimit(t *testing.T) { synctest.Test(t, testLimit) }

func testLimit(t *testing.T) {
	var out bytes.Buffer
	began := time.Now()
	l := Limit(slog.NewTextHandler(&out, &slog.HandlerOptions{ReplaceAttr: func(_ []string, a slog.Attr) slog.Attr {
		if a.Key == slog.TimeKey || a.Key == "last" {
			return slog.Attr{}
		}
		return a
	}}), time.Minute)
	log := slog.New(l)
	wrote := func(want ...string) {
		t.Helper()
		if got := strings.TrimSpace(out.String()); got != strings.Join(want, "\n") {
			t.Errorf("after %s:\n%s\nwant:\n%s", time.Since(began), got, strings.Join(want, "\n"))
		}
		out.Reset()
	}
	fail := func(lease int, text string) {
		time.Sleep(time.Nanosecond) // what is flushed is in the order of its times
		log.Warn("trying again", "lease", lease, "error", errors.New(text))
	}

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
	time.Sleep(time.Minute)
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
	time.Sleep(time.Hour)
	if l.Flush(t.Context(), false); len(l.shared.seen) > 0 {
		t.Errorf("%d kinds are remembered", len(l.shared.seen))
	}
}

// Whatever is logged, memory is bounded, and nothing is lost by that.
func TestLimitIsBounded(t *testing.T) {
	var out bytes.Buffer
	l := Limit(slog.NewTextHandler(&out, nil), time.Minute)
	const lines = maxKinds + 100
	for i := range lines {
		slog.New(l).Warn("trying again", "error", fmt.Sprint("path ", i))
	}
	if n := strings.Count(out.String(), "\n"); n != lines || len(l.shared.seen) > maxKinds {
		t.Errorf("%d lines, %d kinds", n, len(l.shared.seen))
	}
}

// The times of a log do not run backwards: what is written later has the time of then, and that of its last record.
func TestFlushedRecordHasTheTimeOfNow(t *testing.T) { synctest.Test(t, testFlushedRecord) }

func testFlushedRecord(t *testing.T) {
	var out bytes.Buffer
	var last time.Time
	l := Limit(slog.NewJSONHandler(&out, nil), time.Minute)
	for range 3 {
		last = time.Now()
		r := slog.NewRecord(last, slog.LevelWarn, "retrying", 0)
		if err := l.Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Second)
	}
	time.Sleep(time.Hour)
	out.Reset()
	l.Flush(t.Context(), false)
	shown := func(t time.Time) string { return t.Format(`":"` + time.RFC3339Nano + `"`) }
	if got := out.String(); !strings.Contains(got, `"time`+shown(time.Now())) ||
		!strings.Contains(got, `"last`+shown(last)) {
		t.Error(got)
	}
}

// One event's error can be as long as its block: the log gets its begin, and what repeats is kept as short.
func TestLongTexts(t *testing.T) {
	var out bytes.Buffer
	l := Limit(slog.NewJSONHandler(&out, nil), time.Minute)
	log, long := slog.New(l), strings.Repeat("x", 52<<20)
	for range 3 {
		log.Warn("trying again", "lease", 1, "error", errors.New(long), "blob", long)
	}
	log.Info("progress", "segment", long)
	for id := range l.shared.seen {
		if len(id) > 8<<10 {
			t.Errorf("%d bytes are kept to know what repeats", len(id))
		}
	}
	l.Flush(t.Context(), true)
	if n := out.Len(); n > 20<<10 || strings.Count(out.String(), "\n") != 3 || !strings.Contains(out.String(),
		`"lease":1`) {
		t.Errorf("%d bytes of log: %.200s", n, out.String())
	}
}

// Every key in a call of a logger is a literal in snake case, and every message begins in lower case: what is searched
// for must stay.
func TestKeys(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z_]*$`)
	calls := 0
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), "../../"+name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !logs(call) {
				return true
			}
			calls++
			for i, arg := range call.Args {
				if i > 0 && i%2 == 0 {
					continue // a value
				}
				lit, ok := arg.(*ast.BasicLit)
				if !ok {
					t.Errorf("%s: argument %d of a log call is no literal", name, i)
					continue
				}
				text, _ := strconv.Unquote(lit.Value)
				if i == 0 && (text == "" || strings.ToLower(text[:1]) != text[:1]) ||
					i > 0 && !snake.MatchString(text) {
					t.Errorf("%s: %s", name, lit.Value)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || calls < 10 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// logs reports whether a call is one of a logger: x.log.Info, b.Log.Warn, log.Error.
func logs(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, f.Sel.Name) {
		return false
	}
	switch x := f.X.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "log")
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "log")
	}
	return false
}

// Goroutines that log at the same moment reach the writer in any order. The times of their lines do not run backwards.
func TestTimesDoNotRunBackwards(t *testing.T) {
	var out bytes.Buffer
	l := Limit(slog.NewTextHandler(&out, nil), time.Minute)
	began := time.Now()
	for i, after := range []time.Duration{2, 1, 3} {
		of := l.WithAttrs([]slog.Attr{slog.Int("bridge", i)})
		r := slog.NewRecord(began.Add(after*time.Millisecond), slog.LevelInfo, "leases released", 0)
		if err := of.Handle(t.Context(), r); err != nil {
			t.Fatal(err)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 3 || !slices.IsSortedFunc(lines, func(a, b string) int {
		return strings.Compare(strings.Fields(a)[0], strings.Fields(b)[0])
	}) {
		t.Error(out.String())
	}
}
