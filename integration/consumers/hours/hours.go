package hours

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"
)

// ErrLate is returned for a change of an hour that is done: Azure published it later than BRIDGE_RESOLVED_SLACK allows
// for.
var ErrLate = errors.New("the hour was handed over")

// Checkpoint is where a consumer goes on. The zero Checkpoint is the beginning.
type Checkpoint struct {
	Done time.Time // all hours before it were handed over
	Next []int64   // by partition, where to begin to read
	Read []int64   // by partition, what is below was read before
}

// Change is a record of the topic.
type Change struct {
	Partition  int32
	Offset     int64
	Key, Value []byte
	Time       time.Time
}

// Hour is complete.
type Hour struct {
	Begin      time.Time
	Changes    []Change   // by partition, in the topic's order, which is that of each blob
	Checkpoint Checkpoint // to be stored together with the hour
}

// Buffer holds the changes of hours that are not complete.
type Buffer struct {
	done     time.Time
	read     []int64     // by partition, of the consumer before this one
	next     []int64     // by partition; all are set when an hour is complete
	resolved []time.Time // by partition
	open     map[time.Time][]Change
	markers  []marker // those that may complete an open hour
}

type marker struct {
	partition int32
	offset    int64
	time      time.Time
}

// New returns a buffer for all partitions of a topic, each of which is read from its Next on.
func New(partitions int, from Checkpoint) *Buffer {
	b := &Buffer{done: from.Done, read: make([]int64, partitions), next: make([]int64, partitions),
		resolved: make([]time.Time, partitions),
		open:     map[time.Time][]Change{}}
	copy(b.read, from.Read)
	return b
}

// Add takes a partition's next record and returns the hours that are complete with it. What has no key is a marker.
func (b *Buffer) Add(partition int32, offset int64, key, value []byte) ([]Hour, error) {
	var v struct{ Updated, Resolved string }
	if err := json.Unmarshal(value, &v); err != nil {
		return nil, fmt.Errorf("reading the value at offset %d of partition %d: %w", offset, partition, err)
	}
	text := v.Updated
	if key == nil {
		text = v.Resolved
	}
	at, err := parse(text)
	if err != nil {
		return nil, fmt.Errorf("reading the time at offset %d of partition %d: %w", offset, partition, err)
	}
	b.next[partition] = offset + 1
	hour := at.Truncate(time.Hour)
	switch {
	case key == nil:
		b.resolved[partition] = at
		b.markers = append(b.markers, marker{partition, offset, at})
		return b.complete(), nil
	case !hour.Before(b.done):
		b.open[hour] = append(b.open[hour], Change{partition, offset, key, value, at})
	case offset >= b.read[partition]:
		return nil, fmt.Errorf("adding a change of %s at offset %d of partition %d: %w", at, offset, partition, ErrLate)
	}
	return nil, nil
}

// complete takes out the hours up to whose end every partition is resolved.
func (b *Buffer) complete() (hours []Hour) {
	resolved := slices.MinFunc(b.resolved, time.Time.Compare).Truncate(time.Hour)
	for _, begin := range slices.SortedFunc(maps.Keys(b.open), time.Time.Compare) {
		if !begin.Before(resolved) {
			break
		}
		changes := b.open[begin]
		slices.SortStableFunc(changes, func(a, b Change) int { return int(a.Partition - b.Partition) })
		delete(b.open, begin)
		b.done = begin.Add(time.Hour)
		hours = append(hours, Hour{begin, changes, b.checkpoint()})
	}
	if resolved.After(b.done) {
		b.done = resolved // hours without changes
	}
	b.markers = slices.DeleteFunc(b.markers, func(m marker) bool { return !b.needs(m) })
	return hours
}

// needs reports whether a marker may complete an hour that is not done.
func (b *Buffer) needs(m marker) bool { return m.time.Truncate(time.Hour).After(b.done) }

// checkpoint goes back to the first record that is needed again.
func (b *Buffer) checkpoint() Checkpoint {
	c := Checkpoint{Done: b.done, Next: slices.Clone(b.next), Read: slices.Clone(b.read)}
	for p, next := range b.next {
		c.Read[p] = max(c.Read[p], next)
	}
	for _, changes := range b.open {
		for _, change := range changes {
			c.Next[change.Partition] = min(c.Next[change.Partition], change.Offset)
		}
	}
	for _, m := range b.markers {
		if b.needs(m) {
			c.Next[m.partition] = min(c.Next[m.partition], m.offset)
		}
	}
	return c
}

// parse reads "<nanoseconds>.<10 digits>".
func parse(text string) (time.Time, error) {
	if len(text) < 12 || text[len(text)-11] != '.' {
		return time.Time{}, fmt.Errorf("%q is not <nanoseconds>.<10 digits>", text)
	}
	ns, err := strconv.ParseInt(text[:len(text)-11], 10, 64)
	return time.Unix(0, ns).UTC(), err
}
