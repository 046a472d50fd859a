package crash

import (
	"context"
	"errors"
	"strings"
	"testing"

	"golang.org/x/sync/errgroup"
)

func boom() { panic("planted\nhere") }

// A panic is reported with its kind, value and place, and the error of a group is the panic.
func TestCaught(t *testing.T) {
	caught := make(chan *Panic, 3)
	ctx := With(t.Context(), func(p *Panic) { caught <- p })
	Go(ctx, "view", boom)
	p := <-caught
	if p.Kind != "view" || p.Value != `planted\u000ahere` || !strings.Contains(p.Place(), "crash.boom (") ||
		!strings.Contains(p.Error(), "a goroutine (view) panicked at ") || len(p.Stack) < 2 {
		t.Errorf("%v, %q", p, p.Stack)
	}
	group, inner := errgroup.WithContext(ctx)
	group.Go(Try(ctx, "shard", func() error { boom(); return nil }))
	group.Go(func() error { <-inner.Done(); return nil }) // ends with the other
	if err := group.Wait(); !errors.As(err, &p) || p.Kind != "shard" || <-caught != p {
		t.Errorf("%v", err)
	}
	var none map[string]int
	Go(ctx, "worker", func() { none["x"] = 1 })
	if p := <-caught; !strings.Contains(p.Value, "nil map") || !strings.Contains(p.Place(), "TestCaught") {
		t.Errorf("%v", p)
	}
}

// Without a handler a panic is not recovered from: it ends the process, with Go's own report.
func TestNotCaught(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("the panic is lost")
		}
	}()
	Guard(context.Background(), "view", boom)()
}

// Endless recursion cannot be recovered from, but a deep stack is cut.
func TestDeepStack(t *testing.T) {
	var deep func(n int)
	deep = func(n int) {
		if n == 0 {
			boom()
		}
		deep(n - 1)
	}
	caught := make(chan *Panic, 1)
	Go(With(t.Context(), func(p *Panic) { caught <- p }), "view", func() { deep(10_000) })
	if p := <-caught; len(p.Stack) > maxFrames {
		t.Errorf("%d calls", len(p.Stack))
	}
}
