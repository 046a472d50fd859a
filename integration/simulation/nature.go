package simulation

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/testing/protocol"
	"blobfeed/offsets"
	"blobfeed/source"
)

// wound is a block that was damaged.
type wound struct {
	blob string
	at   int64
	was  []byte
}

// segment is the one that the blob is of: log/00/2026/01/01/0000/00000.avro.
func (d *wound) segment() string { return d.blob[7:22] }

// retire removes blobs, the oldest segments first, as far as the plan's retention goes. Of a plan that is traced, it
// removes whole segments or, with a pause, blob by blob.
func (w *world) retire(n int, pause time.Duration) {
	f := w.frontier()
	if w.plan.Retention == Delivered {
		if w.moved || f == nil {
			return
		}
		w.completed = f.Completed
	}
	segments := w.blobs.segments()
	for k, segment := range segments {
		if k >= len(segments)-2 && !w.plan.Traced || k == len(segments)-1 {
			return // the open one, and the one before it
		}
		seg, err := source.ParseSegment(segment)
		if err != nil {
			w.fail("%v", err)
			return
		}
		if w.plan.Retention == Delivered && seg.Compare(w.completed) >= 0 {
			return
		}
		names := w.blobs.of(segment)
		if w.plan.Traced {
			if n--; n < 0 {
				return
			}
			if pause > 0 {
				w.crumble(seg, names, pause)
			} else {
				w.outlive(seg, names, f)
			}
			continue
		}
		for _, name := range names {
			if n == 0 {
				return
			}
			n--
			w.mu.Lock()
			w.lossy = w.lossy || w.plan.Retention == EatsUnread
			w.retired = seg
			w.mu.Unlock()
			w.judge.removed(name, segment, f != nil && f.At() != (source.Segment{}))
			w.blobs.remove(name)
			w.logf("retention removes %s", name)
			time.Sleep(20 * time.Millisecond)
		}
	}
}

// outlive removes blobs of a segment at once.
func (w *world) outlive(seg source.Segment, names []string, f *offsets.Frontier) {
	w.mu.Lock()
	w.lossy, w.retired = true, seg
	w.mu.Unlock()
	e := protocol.Event{Kind: protocol.Removed, Segment: number(seg)}
	for _, name := range names {
		w.judge.removed(name, seg.String(), f != nil && f.At() != (source.Segment{}))
		var shard uint8
		if n, _ := fmt.Sscanf(name, "log/%d/", &shard); n == 1 {
			e.Shards = append(e.Shards, protocol.Block{Segment: e.Segment, Shard: shard})
		}
	}
	w.blobs.removeAll(names, func() { w.tracer.happens(e) })
	w.logf("retention removes %s: %v", seg, names)
}

// crumble removes a segment blob by blob: the manifest first, then the chunks, in an order that depends on the plan. It
// begins when the segment is being delivered, if it soon is.
func (w *world) crumble(seg source.Segment, names []string, pause time.Duration) {
	if w.plan.Seed%8 < 4 {
		slices.Reverse(names[1:])
	}
	f := w.frontier()
	for range 40 {
		if f != nil && f.At().Compare(seg) >= 0 {
			break
		}
		time.Sleep(100 * time.Millisecond)
		f = w.frontier()
	}
	for _, name := range names {
		time.Sleep(pause)
		w.outlive(seg, []string{name}, f)
	}
}

// written damages the block that an append to a chunk begins with, if damage is due. The lock of the blobs is held.
func (w *world) written(blob string, at int64, data []byte) []byte {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.due) == 0 || at == 0 {
		return data
	}
	heals := w.due[0]
	w.due = w.due[1:]
	const varint = 10 // all ones is longer than any
	d := &wound{blob: blob, at: at, was: slices.Clone(data[:varint])}
	for k := range varint {
		data[k] = 0xff
	}
	w.judge.damaged(d, heals == 0)
	w.logf("damage at %s:%d, heals after %s", blob, at, heals)
	switch {
	case heals == 0:
		w.wounds = append(w.wounds, d)
	case !w.plan.DeadLetters:
		time.AfterFunc(heals, func() { w.blobs.overwrite(d.blob, d.at, d.was) })
	}
	return data
}

// heal ends the damage that a seek does not go past, and that which comes too late for one.
func (w *world) heal(passes func(*wound) bool) {
	w.mu.Lock()
	var healed []*wound
	w.wounds = slices.DeleteFunc(w.wounds, func(d *wound) bool {
		if passes != nil && passes(d) {
			return false
		}
		healed = append(healed, d)
		return true
	})
	w.due = nil
	w.mu.Unlock()
	for _, d := range healed {
		w.logf("%s:%d heals", d.blob, d.at)
		w.blobs.overwrite(d.blob, d.at, d.was)
	}
}

// refuse makes the brokers refuse requests.
func (w *world) refuse(s Step) {
	f := kfake.Fault{Keys: []kmsg.Key{s.Key}, Err: s.Err, Count: s.N}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.faults = append(w.faults, w.cluster.Fault(f))
}

// grow adds partitions to the topic of records.
func (w *world) grow(n int) {
	ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
	defer cancel()
	r, err := w.admin.UpdatePartitions(ctx, w.plan.Partitions+n, topicName)
	if err == nil {
		_, err = r.On(topicName, nil)
	}
	if err == nil {
		err = r[topicName].Err
	}
	if err != nil {
		w.logf("adding partitions: %v", err)
		return
	}
	w.judge.grown = w.plan.Partitions + n
	w.logf("%s has %d partitions", topicName, w.judge.grown)
}
