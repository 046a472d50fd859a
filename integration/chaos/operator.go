//go:build unix

package chaos

import (
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/source"
)

// Seek starts the program's verb that moves the bridge to a segment, though instances run.
func (w *World) Seek(to string, env ...string) (*Instance, error) {
	return w.launchVerb([]string{"seek", "--to", to, "--yes", "--force"}, env...)
}

// Reset starts the program's verb that removes all progress, though instances run.
func (w *World) Reset(env ...string) (*Instance, error) {
	return w.launchVerb([]string{"reset", "--yes", "--force"}, env...)
}

func (w *World) launchVerb(args []string, env ...string) (*Instance, error) {
	w.mu.Lock()
	n := w.verbs
	w.verbs++
	w.mu.Unlock()
	settings := append(append(slices.Clone(w.env), "BRIDGE_KAFKA_BROKERS="+w.stack.KafkaBrokers[0]), env...)
	log := filepath.Join(w.dir, fmt.Sprintf("%s-%d.log", args[0], n))
	i, err := Launch(w.program, log, args, settings...)
	if err != nil {
		return nil, err
	}
	i.Name = fmt.Sprintf("%s, verb %d", strings.Join(args, " "), n)
	return i, nil
}

// segments are those of the feed that retention has left, the oldest first.
func (w *World) segments() (all []string) {
	for name := range w.files.All() {
		if rest, ok := strings.CutPrefix(name, "idx/segments/"); ok {
			all = append(all, strings.TrimSuffix(rest, "/meta.json"))
		}
	}
	slices.Sort(all)
	return all
}

// chunks are those of a segment.
func (w *World) chunks(segment string) (all []string) {
	for name := range w.files.All() {
		if strings.HasPrefix(name, "log/") && strings.Contains(name, "/"+segment+"/") {
			all = append(all, name)
		}
	}
	return all
}

// Retain removes all segments but the newest, of which the open one is not counted: nobody may append meanwhile.
// It says so before.
func (w *World) Retain(keep int, remove func(segment string, gone func(shard, chunk int) bool)) (removed int) {
	all := w.segments()
	for _, segment := range all[:max(0, len(all)-1-keep)] {
		remove(segment, func(int, int) bool { return true })
		w.files.Remove("idx/segments/" + segment + "/") // the manifest is the first to go
		for _, chunk := range w.chunks(segment) {
			w.files.Remove(chunk)
		}
		removed++
	}
	return removed
}

// Trim removes all chunks but the last of each shard of the oldest segment that is left, if that is not the open one.
func (w *World) Trim(remove func(segment string, gone func(shard, chunk int) bool)) {
	all := w.segments()
	if len(all) < 2 {
		return
	}
	place := func(path string) (shard, chunk int) {
		_, _ = fmt.Sscanf(path, "log/%02d/", &shard)
		_, _ = fmt.Sscanf(path[strings.LastIndex(path, "/")+1:], "%05d.avro", &chunk)
		return shard, chunk
	}
	last := map[int]int{} // by shard
	for _, path := range w.chunks(all[0]) {
		shard, chunk := place(path)
		last[shard] = max(last[shard], chunk)
	}
	remove(all[0], func(shard, chunk int) bool { return chunk < last[shard] })
	for _, path := range w.chunks(all[0]) {
		if shard, chunk := place(path); chunk < last[shard] {
			w.files.Remove(path)
		}
	}
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
			if err := r.turn(ctx, r.judge.Expect); err != nil {
				return err
			}
		}
		n := r.Retain(f.Segments, r.judge.Remove)
		if f.Kind == Trim {
			r.Trim(r.judge.Remove)
		}
		r.Logf("retention has removed %d segments up to the open one, %s", n,
			r.feed.Segment().Format("2006/01/02/1504"))
		return nil
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
			if err := r.turn(ctx, r.judge.Expect); err != nil {
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

// scan asks for a scan, and to cancel it. One that is refused is an operator's who comes too early: another scan may be
// under way, or a broker away.
func (r *run) scan(f Fault) {
	ask := func(args ...string) bool {
		i, err := r.launchVerb(append([]string{"scan"}, args...))
		if err == nil {
			err = i.Wait(settleLimit)
		}
		if err != nil {
			r.Logf("%v", err)
		}
		return err == nil
	}
	r.stopping.Go(func() {
		var args []string
		if f.Sweep {
			args = []string{"--sweep"}
		}
		if !ask(args...) {
			return
		}
		r.scans.Add(1)
		if f.Crash > 0 {
			time.Sleep(f.Crash)
			ask("--cancel")
		}
	})
}

// repair makes the topic the account again, whatever seeks and retention have left out.
func (r *run) repair(ctx context.Context) error {
	return Await(ctx, settleLimit, "a sweep that is complete", func(context.Context) (bool, error) {
		i, err := r.launchVerb([]string{"scan", "--sweep", "--wait"})
		if err == nil {
			err = i.Wait(settleLimit)
		}
		return err == nil, err
	})
}

// grow adds a partition to the topic.
func (r *run) grow(ctx context.Context) error {
	if err := r.settle(ctx); err != nil {
		return err
	}
	answers, err := r.admin.CreatePartitions(ctx, 1, r.Topic)
	if err == nil {
		err = answers.Error()
	}
	return err
}
