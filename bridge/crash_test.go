package bridge

import (
	"context"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/feedsim"
	"blobfeed/verify"
)

// A crash in the middle, at any commit: with transactions nothing comes twice; without, ids tell what does, and
// what comes for the first time is in order.
func TestReplayAfterACrash(t *testing.T) {
	t.Parallel()
	for name, transactional := range map[string]bool{"exactly once": true, "at least once": false} {
		t.Run(name, func(t *testing.T) {
			ctx := t.Context()
			m, live := simulated(t, feedsim.Spec{Blobs: 30, BlockEvents: 5, Shards: 2})
			complete := verify.NewComplete()
			for range 2 {
				must(t, live.Append(ctx, 200, func(e feedsim.Event) { complete.Expect(e.ID) }), live.Next(ctx))
			}
			c := broker(t)
			for crash := range 3 {
				o, r := over(t, c, m)
				o.Transactional, o.TxnBytes, o.CommitInterval, o.BundleBytes = transactional, 30_000, time.Millisecond, 0
				hard, kill := context.WithCancel(ctx)
				o.Observer = &crashing{recorder: r, left: 2 + crash, kill: kill}
				if err := New(o).Run(hard, hard); err != nil {
					t.Errorf("crash %d: %v", crash, err)
				}
				if hard.Err() == nil {
					t.Errorf("crash %d: it did not come to it", crash)
				}
				kill()
			}
			o, _ := over(t, c, m)
			o.Transactional = transactional
			must(t, runOnce(t, o))
			first := &firsts{seen: map[string]bool{}, last: map[string]string{}}
			notes := []verify.Validator{complete, first}
			if transactional {
				notes = append(notes, promises()...)
			}
			data, _ := consume(t, c, notes...)
			if data < 400 || transactional && data != 400 || complete.Left() > 0 || first.wrong > 0 {
				t.Errorf("%d records, %d events missing, %d out of order", data, complete.Left(), first.wrong)
			}
		})
	}
}

// crashing ends an instance hard after some commits.
type crashing struct {
	*recorder
	left int
	kill func()
}

func (c *crashing) Committed(commit Commit) {
	c.recorder.Committed(commit)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.left--; c.left == 0 {
		c.kill()
	}
}

// firsts checks the order of each blob's events by their sequencers, without those that came before.
type firsts struct {
	seen  map[string]bool
	last  map[string]string
	wrong int
}

func (f *firsts) Note(r verify.Record) {
	id := string(r.Header("ce_id"))
	if r.Key == nil || f.seen[id] {
		return
	}
	f.seen[id] = true
	sequence := strings.ToLower(string(r.Header("sequence")))
	if sequence <= f.last[string(r.Key)] {
		f.wrong++
	}
	f.last[string(r.Key)] = sequence
}

func (f *firsts) Failures() []verify.Failure { return nil }
