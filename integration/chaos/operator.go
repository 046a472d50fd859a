//go:build unix

package chaos

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/source"
)

// Seek starts the program's verb that moves the bridge to a segment, though instances run.
func (w *World) Seek(to string, env ...string) (*Instance, error) {
	return w.launchVerb([]string{"seek", "--to", to}, env...)
}

// Reset starts the program's verb that removes all progress, though instances run.
func (w *World) Reset(env ...string) (*Instance, error) {
	return w.launchVerb([]string{"reset"}, env...)
}

func (w *World) launchVerb(args []string, env ...string) (*Instance, error) {
	w.mu.Lock()
	n := w.verbs
	w.verbs++
	w.mu.Unlock()
	settings := append(append(slices.Clone(w.env), "BRIDGE_KAFKA_BROKERS="+w.stack.KafkaBrokers[0]), env...)
	log := filepath.Join(w.dir, fmt.Sprintf("%s-%d.log", args[0], n))
	i, err := Launch(w.program, log, append(slices.Clone(args), "--yes", "--force"), settings...)
	if err != nil {
		return nil, err
	}
	i.Name = fmt.Sprintf("%s, verb %d", strings.Join(args, " "), n)
	return i, nil
}

// segments are those of the feed that retention has left, the oldest first.
func (w *World) segments() ([]string, error) {
	dirs, err := filepath.Glob(filepath.Join(w.root, "idx/segments/*/*/*/*"))
	if err != nil {
		return nil, err
	}
	var all []string
	for _, dir := range dirs { // in order
		name, err := filepath.Rel(filepath.Join(w.root, "idx/segments"), dir)
		if err != nil {
			return nil, err
		}
		all = append(all, filepath.ToSlash(name))
	}
	return all, nil
}

// Retain removes all segments but the newest, of which the open one is not counted: nobody may append meanwhile.
// It says so before.
func (w *World) Retain(keep int, remove func(segment string, gone func(shard, chunk int) bool)) (removed int, _ error) {
	all, err := w.segments()
	if err != nil {
		return 0, err
	}
	for _, segment := range all[:max(0, len(all)-1-keep)] {
		remove(segment, func(int, int) bool { return true })
		// The manifest is the first to go. At once: a store has no empty folders.
		aside := filepath.Join(w.root+".removed", filepath.FromSlash(segment))
		if err := os.MkdirAll(filepath.Dir(aside), 0o755); err != nil {
			return removed, err
		}
		if err := os.Rename(filepath.Join(w.root, "idx/segments", segment), aside); err != nil {
			return removed, err
		}
		shards, err := filepath.Glob(filepath.Join(w.root, "log/*", segment))
		if err != nil {
			return removed, err
		}
		for _, shard := range shards {
			if err := os.RemoveAll(shard); err != nil {
				return removed, err
			}
		}
		removed++
	}
	return removed, nil
}

// Trim removes all chunks but the last of each shard of the oldest segment that is left, if that is not the open one.
func (w *World) Trim(remove func(segment string, gone func(shard, chunk int) bool)) error {
	all, err := w.segments()
	if err != nil || len(all) < 2 {
		return err
	}
	var chunks []string
	last := map[int]int{} // by shard
	paths, err := filepath.Glob(filepath.Join(w.root, "log/*", all[0], "*.avro"))
	if err != nil {
		return err
	}
	place := func(path string) (shard, chunk int) {
		name, _ := filepath.Rel(filepath.Join(w.root, "log"), path)
		_, _ = fmt.Sscanf(name, "%02d/", &shard)
		_, _ = fmt.Sscanf(filepath.Base(path), "%05d.avro", &chunk)
		return shard, chunk
	}
	for _, path := range paths {
		shard, chunk := place(path)
		last[shard] = max(last[shard], chunk)
	}
	for _, path := range paths {
		if shard, chunk := place(path); chunk < last[shard] {
			chunks = append(chunks, path)
		}
	}
	remove(all[0], func(shard, chunk int) bool { return chunk < last[shard] })
	for _, path := range chunks {
		if err := os.Remove(path); err != nil {
			return err
		}
	}
	return nil
}

// promise returns the marker of the newest segment, once that is complete.
func (w *World) promise() string {
	return envelope.Timestamp{Wall: w.feed.Segment().Add(time.Hour - slack).UnixNano()}.String()
}

// slack is the default of BRIDGE_RESOLVED_SLACK.
const slack = 15 * time.Minute

// between has something done by the feeder, who alone may touch the feed.
func (r *run) between(ctx context.Context, do func() error) error {
	result := make(chan error, 1)
	select {
	case r.work <- func() { result <- do() }:
		return <-result
	case <-ctx.Done():
		return ctx.Err()
	}
}

// retain has retention remove what a fault says.
func (r *run) retain(ctx context.Context, f Fault) error {
	if r.judge.Newest() == "" {
		return nil // where to begin is not decided, so nothing would be a loss
	}
	return r.between(ctx, func() error {
		if f.Segments == 0 { // with what the paused instance has not read
			if err := r.feed.Next(ctx); err != nil {
				return err
			}
		}
		n, err := r.Retain(f.Segments, r.judge.Remove)
		if err == nil && f.Kind == Trim {
			err = r.Trim(r.judge.Remove)
		}
		r.Logf("retention has removed %d segments up to the open one, %s", n,
			r.feed.Segment().Format("2006/01/02/1504"))
		return err
	})
}

// seek moves the bridge, and sees to it that the move ends. One at a time: a marker reports only the last one.
func (r *run) seek(ctx context.Context, f Fault) error {
	if r.judge.Newest() == "" || !r.seeking.TryLock() {
		return nil
	}
	var to string
	if err := r.between(ctx, func() error {
		if f.Segments == 0 { // forward
			if err := r.feed.Next(ctx); err != nil {
				return err
			}
		}
		at := r.feed.Segment().Add(-time.Duration(f.Segments) * time.Hour)
		if at.Before(r.first) {
			at = r.first
		}
		to = source.SegmentAt(at).String()
		return nil
	}); err != nil {
		r.seeking.Unlock()
		return err
	}
	r.stopping.Go(func() {
		defer r.seeking.Unlock()
		if err := r.move(ctx, to, f.Crash); err != nil {
			r.fail(err.Error())
		}
	})
	return nil
}

// move repeats the seek until it is decided, as an operator does: an instance may have taken lease 0 back, or a broker
// be down.
func (r *run) move(ctx context.Context, to string, crash time.Duration) error {
	before := r.judge.Seeks()
	for began, n := time.Now(), 1; ; n++ {
		i, err := r.Seek(to)
		if err != nil {
			return err
		}
		if crash > 0 {
			select {
			case <-i.done:
			case <-time.After(crash):
				i.Kill()
				r.Logf("%s was killed", i.Name)
				return nil // it has moved the bridge, or not
			}
		}
		if err = i.Wait(settleLimit); err == nil {
			r.Logf("%s is decided, try %d", i.Name, n)
			return Await(ctx, endLimit, "a marker of the seek to "+to, func(context.Context) (bool, error) {
				return r.judge.Sought(to, before), nil
			})
		}
		r.Logf("%v", err)
		if time.Since(began) > settleLimit {
			return err
		}
		select {
		case <-time.After(500 * time.Millisecond):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}
