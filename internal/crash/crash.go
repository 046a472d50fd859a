// Package crash keeps the end of one bridge, by an error or a panic, from ending a process that runs many (Supervisor).
//
// A context can carry a handler. A goroutine that this package starts with such a context recovers from a panic and
// reports it to the handler. Without a handler the panic ends the process, as it should end one that runs one bridge:
// whoever supervises the process starts it again.
package crash

import (
	"context"
	"fmt"
	"runtime"
	"strings"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/mutation"
)

// Panic is a panic of a goroutine.
type Panic struct {
	Kind  string   // of the goroutine, such as shard or view
	Value string   // that it panicked with
	Stack []string // function and line, the place of the panic first
}

// Error names the place, but not the whole stack.
func (p *Panic) Error() string {
	return fmt.Sprintf("a goroutine (%s) panicked at %s: %s", p.Kind, p.Place(), p.Value)
}

// Place is where the panic was.
func (p *Panic) Place() string {
	if len(p.Stack) == 0 {
		return "an unknown place"
	}
	return p.Stack[0]
}

// Handler hears of a panic, in the goroutine that panicked. It must stop what waits for that goroutine.
type Handler func(*Panic)

type key struct{}

// With returns a context whose goroutines report panics to h.
func With(ctx context.Context, h Handler) context.Context { return context.WithValue(ctx, key{}, h) }

// Of returns the handler of a context, nil if there is none.
func Of(ctx context.Context) Handler {
	h, _ := ctx.Value(key{}).(Handler)
	return h
}

// Go runs f in a goroutine.
func Go(ctx context.Context, kind string, f func()) { go Guard(ctx, kind, f)() }

// Guard returns f for a goroutine that somebody else starts.
func Guard(ctx context.Context, kind string, f func()) func() {
	return func() {
		defer Of(ctx).Catch(kind)
		mutation.Panic(kind)
		f()
	}
}

// Try returns f for an errgroup. A panic is also its error, so that the others of the group end.
func Try(ctx context.Context, kind string, f func() error) func() error {
	h := Of(ctx)
	if h == nil {
		return f
	}
	return func() (err error) {
		defer Handler(func(p *Panic) { err = p; h(p) }).Catch(kind)
		mutation.Panic(kind)
		return f()
	}
}

// Catch is for defer: it reports a panic, if there is one and a handler.
func (h Handler) Catch(kind string) {
	if h == nil {
		return
	}
	if value := recover(); value != nil {
		h(&Panic{Kind: kind, Value: plain.Line(fmt.Sprint(value)), Stack: stack()})
	}
}

// maxFrames bounds a stack: one of endless recursion is all alike.
const maxFrames = 50

// stack returns the calls that led to a panic which a deferred Catch recovers from.
func stack() (calls []string) {
	pcs := make([]uintptr, maxFrames)
	frames := runtime.CallersFrames(pcs[:runtime.Callers(3, pcs)])
	for {
		f, more := frames.Next()
		if f.Function != "" && !strings.HasPrefix(f.Function, "runtime.") {
			calls = append(calls, fmt.Sprintf("%s (%s:%d)", f.Function, f.File, f.Line))
		}
		if !more {
			return calls
		}
	}
}
