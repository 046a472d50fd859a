package offsets

import (
	"errors"
	"strings"
	"testing"
)

// openTx returns the open transaction of a lease, a new one if there is none.
func openTx(l *Lease) *Tx {
	if l.tx != nil {
		return l.tx
	}
	t, err := l.Begin()
	if err != nil {
		return &Tx{l: l} // which fails, as the lease has
	}
	return t
}

// Nothing is committed beside an open transaction, by nobody: neither its records nor a document alone.
func TestOneTransactionAtATime(t *testing.T) {
	for _, exact := range []bool{true, false} {
		cfg, ctx := cluster(t)
		cfg.Transactional = exact
		l := acquire(t, ctx, cfg, viewOf(t, cfg), "one")
		produce(t, ctx, l, "half done")
		func() {
			defer func() {
				if recover() == nil {
					t.Error("a test does not stop at the mistake")
				}
			}()
			_ = l.Commit(ctx, l.Cursor(), nil)
		}()
		stopsAtMistakes = false
		err := l.Commit(ctx, l.Cursor(), nil)
		again, err2 := l.Begin()
		stopsAtMistakes = true
		if !errors.Is(err, ErrOpen) || !errors.Is(err2, ErrOpen) || again != nil {
			t.Errorf("another transaction: %v, %v", err, err2)
		}
		if !exact {
			continue // its records are visible when they are written
		}
		l.Close(ctx)
		next := acquire(t, ctx, cfg, viewOf(t, cfg), "two")
		produce(t, ctx, next, "whole")
		if err := openTx(next).Commit(ctx, next.Cursor(), nil); err != nil {
			t.Fatal(err)
		}
		if got := committed(t, ctx, cfg, 1); len(got) != 1 || got[0] != "whole" {
			t.Errorf("consumers see %q", got)
		}
	}
}

// A transaction that has not taken all of its records commits no cursor over them (I1).
func TestFailedTransactionIsNotCommitted(t *testing.T) {
	for _, exact := range []bool{true, false} {
		cfg, ctx := cluster(t)
		cfg.Transactional = exact
		l := acquire(t, ctx, cfg, viewOf(t, cfg), "one")
		tx, err := l.Begin()
		if err != nil {
			t.Fatal(err)
		}
		if err := l.fail(errors.New("no producer ID")); err == nil {
			t.Fatal("the failure is lost")
		}
		if err := tx.Commit(ctx, l.Cursor(), nil); err == nil || !strings.Contains(err.Error(), "no producer ID") {
			t.Errorf("the commit says %v", err)
		}
		l.Close(ctx)
	}
}

// A transaction that is over does not bar the next one, and a failed one does.
func TestTransactionsFollowEachOther(t *testing.T) {
	cfg, ctx := cluster(t)
	v := viewOf(t, cfg)
	l := acquire(t, ctx, cfg, v, "one")
	for range 2 {
		if err := l.Commit(ctx, l.Cursor(), nil); err != nil {
			t.Fatal(err)
		}
	}
	acquire(t, ctx, cfg, v, "two")
	if err := l.Commit(ctx, l.Cursor(), nil); !errors.Is(err, ErrFenced) {
		t.Fatalf("a fenced lease commits: %v", err)
	}
	if _, err := l.Begin(); !errors.Is(err, ErrFenced) {
		t.Errorf("another transaction of it: %v", err)
	}
}
