package offsets

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blobfeed/source"
)

// Keys of the topic.
const (
	keyCursor   = "cursor"
	keyFrontier = "frontier"
	keyOwner    = "owner"
	keyRequest  = "request"

	keyDelivered = "delivered"
)

// aside reports whether a record is of no lease: a client writes it, and it may stand between two of a lease.
func aside(key string) bool { return key == keyRequest || key == keyDelivered }

// Cursor is how far one lease has read. Every record of the events before it is in the same transaction as the cursor
// or in an earlier one (I1).
type Cursor struct {
	Version int       `json:"version"`
	Owner   string    `json:"owner"`
	Time    time.Time `json:"timestamp"`
	// Epoch is the frontier's when this was written. A cursor of an earlier one has no position: see Seize.
	Epoch int64 `json:"epoch,omitempty"`
	// Term is that of the acquisition that this was written under; 0 with transactions, which need none: see mark.
	Term    int64          `json:"term,omitempty"`
	Segment source.Segment `json:"segment"`
	// Shards is keyed by the shard's two digits. A shard that is at its end stays in it until the next segment.
	Shards map[string]source.ShardPosition `json:"shards,omitempty"`
	// Done says that every shard of this lease is at its end, and the segment is finalized.
	Done bool `json:"done"`
	Gap  bool `json:"gap,omitempty"` // chunks of this segment were gone before they were read
	// Pins are of the topics that this lease found in the segment, and the frontier does not know yet, by name.
	Pins map[string]Pin `json:"pins,omitempty"`
	// Resolved is the frontier's when this was written. Only without transactions is it needed: see Frontier.Behind.
	Resolved string `json:"resolved,omitempty"`
	Counts   Counts `json:"counts"`
	// Scan is what this lease has done for the frontier's scan, or for one before it.
	Scan *Listing `json:"scan,omitempty"`

	// For operators; nothing is derived from them.
	Event time.Time `json:"event_time,omitzero"`   // the latest of the delivered events
	Ahead int64     `json:"ahead_bytes,omitempty"` // listed in the segment and not yet read, at the last commit
	// Listed is the bytes of the segment's listing, those that are read included.
	Listed  int64    `json:"listed_bytes,omitempty"`
	Error   *Failure `json:"error,omitempty"`   // the last one that was met
	Failing bool     `json:"failing,omitempty"` // it is not over, at the last commit
}

// Failure is an error that an owner has met, and went on trying.
type Failure struct {
	Time   time.Time `json:"time"`
	Error  string    `json:"error"`
	Remedy string    `json:"remedy,omitempty"` // what to do about it, if that is known
}

// Pin is what must not change while a topic is written to: otherwise keys would move to other partitions (I5).
type Pin struct {
	Partitions int32 `json:"partitions"`
	KeySchema  int   `json:"key_schema,omitempty"` // id in the registry; 0 where keys have none
}

// Counts are events since the first start of the bridge, for operators; nothing is derived from them.
type Counts struct {
	Read    int64 `json:"read"`
	Emitted int64 `json:"emitted"`
	// Filtered are those that the settings leave out.
	Filtered int64 `json:"filtered"`
	// Unknown are those of Filtered whose type the bridge does not know.
	Unknown int64 `json:"unknown,omitempty"`
	Late    int64 `json:"late"`
	// DeadLettered are records of the dead-letter topic.
	DeadLettered int64 `json:"dead_lettered"`
	// Scanned are records of scans: rows, and deletions that a sweep found.
	Scanned int64 `json:"scanned,omitempty"`
}

// Add adds those of another lease.
func (c *Counts) Add(o Counts) {
	c.Read += o.Read
	c.Emitted += o.Emitted
	c.Filtered += o.Filtered
	c.Unknown += o.Unknown
	c.Late += o.Late
	c.DeadLettered += o.DeadLettered
	c.Scanned += o.Scanned
}

// At returns the position in shard: its start if the cursor does not know it or is in another segment.
func (c *Cursor) At(seg source.Segment, shard int) source.ShardPosition {
	if c.Segment != seg {
		return source.ShardPosition{}
	}
	return c.Shards[source.ShardName(shard)]
}

// Places returns how far the shards are, for people: shard=chunk/offset.
func (c *Cursor) Places() string {
	var s strings.Builder
	for i, shard := range slices.Sorted(maps.Keys(c.Shards)) {
		if i > 0 {
			s.WriteByte(' ')
		}
		fmt.Fprintf(&s, "%s=%s", shard, c.Shards[shard])
	}
	return s.String()
}

// Advance moves shard to pos, after clearing what belongs to an earlier segment.
func (c *Cursor) Advance(seg source.Segment, shard int, pos source.ShardPosition) {
	if c.Segment != seg || c.Shards == nil {
		c.Segment, c.Done, c.Gap, c.Pins, c.Shards = seg, false, false, nil, map[string]source.ShardPosition{}
	}
	c.Shards[source.ShardName(shard)] = pos
}

// Pin adds pins. The cursor must be in their segment.
func (c *Cursor) Pin(pins map[string]Pin) {
	if c.Pins == nil && len(pins) > 0 {
		c.Pins = map[string]Pin{}
	}
	maps.Copy(c.Pins, pins)
}

// Finish says that every shard of seg is at its end, also where this lease saw no event of it.
func (c *Cursor) Finish(seg source.Segment) {
	if c.Segment != seg {
		c.Segment, c.Gap, c.Pins, c.Shards = seg, false, nil, nil
	}
	c.Done = true
}

// Finished reports whether the cursor says that all of seg is delivered.
func (c *Cursor) Finished(seg source.Segment) bool { return c.Segment == seg && c.Done }

// Over reports whether the cursor's segment is complete. Then only f says where the lease is, because bundles leave
// cursors behind.
func (c *Cursor) Over(f *Frontier) bool { return f != nil && c.Segment.Compare(f.Completed) <= 0 }

// Beyond reports whether the cursor is ahead of f. With transactions it never is for the lease's owner (R1);
// without them f may be the record of a former owner that was paused.
func (c *Cursor) Beyond(f *Frontier) bool {
	return c.Epoch > f.Epoch || c.Epoch == f.Epoch && c.Segment.Compare(f.At()) > 0
}

// void returns what is left of the cursor in a later epoch: no position, but its counts, the pins of topics
// that the frontier may not know yet (I5, I6), and the deletions of a scan, which a repair begins again.
func (c *Cursor) void(epoch int64) *Cursor {
	left := &Cursor{
		Version: c.Version, Owner: c.Owner, Time: c.Time, Epoch: epoch, Pins: c.Pins, Resolved: c.Resolved,
		Counts: c.Counts, Event: c.Event, Error: c.Error,
	}
	if c.Scan != nil && c.Scan.Swept > 0 {
		left.Scan = &Listing{ID: c.Scan.ID, Swept: c.Scan.Swept, From: c.Scan.From}
	}
	return left
}

// CatchUp is how far the bridge is on its way to the newest segment of the feed, for operators; nothing is derived from
// it.
type CatchUp struct {
	Done int `json:"done"` // segments that were completed on the way
	Left int `json:"left"` // segments to complete, the newest included
	// What the speed is measured from: when the owner of lease 0 began to count, and Done and the events read by then.
	Since time.Time `json:"since"`
	From  int       `json:"from"`
	Read  int64     `json:"read"`
}

// Frontier is what all instances agree on. It is written by the owner of lease 0 alone.
type Frontier struct {
	Version int       `json:"version"`
	Owner   string    `json:"owner"`
	Time    time.Time `json:"timestamp"`
	// Epoch rises with every move outside the barrier (seek, reset), which voids the position of every cursor.
	Epoch int64 `json:"epoch,omitempty"`
	// Term is that of the acquisition that this was written under, and Base was Completed before. Only without
	// transactions.
	Term int64          `json:"term,omitempty"`
	Base source.Segment `json:"base,omitzero"`
	// Seen is, of a move that repairs, the end of each partition that it was decided by: see State.Regressed.
	Seen []int64 `json:"seen,omitempty"`
	// Moving says that a move has begun: the owner of lease 0 fences every other lease before it names a segment (R2f).
	Moving bool `json:"moving,omitempty"`
	// Reset says that there is no frontier but an epoch: the next start is a first start.
	Reset bool `json:"reset,omitempty"`
	// Born is the epoch of the first frontier after a reset. A cursor of an earlier epoch does not count at all.
	Born int64 `json:"born,omitempty"`
	// Leases is the number of leases, and so of partitions of the topic. It never changes: shard SS is of lease SS mod
	// Leases.
	Leases    int            `json:"leases,omitempty"`
	Completed source.Segment `json:"completed"` // every event up to and with this segment is delivered
	// Since is what Completed was at the start or behind the last seek, and Earlier is what was delivered before that.
	// The bridge derives nothing from them; status, find and verify do: see Delivered.
	Since   source.Segment `json:"since,omitzero"`
	Earlier []Stretch      `json:"earlier,omitempty"`
	Current source.Segment `json:"current"` // the one being delivered; none while the feed has no later one
	// Shards and Ends are what the manifest of Current said when it was last read: retention may remove the
	// manifest before the segment is complete. After it is complete, Ends is that of Completed.
	Shards []int     `json:"shards,omitempty"`
	Ends   time.Time `json:"ends,omitzero"`
	// OpenSince is when Current ended, if it is open still although there are later ones, which wait for it. For
	// operators.
	OpenSince time.Time `json:"open_since,omitzero"`
	Resolved  string    `json:"resolved"` // the last marker, "<ns>.<10 digits>", or "" before the first
	// Owed says that the markers for Resolved are still to be written. Only without transactions: with them
	// they are in the frontier's own transaction.
	Owed  bool   `json:"owed,omitempty"`
	Feed  string `json:"feed"`            // identity of the account or directory
	Start string `json:"start,omitempty"` // events before it are left out, "<ns>.<10 digits>"; "" is none
	Ended bool   `json:"ended,omitempty"` // everything up to END_TIME is delivered
	Gap   *Gap   `json:"gap,omitempty"`   // lost history that no marker has told of yet
	Gaps  int    `json:"gaps,omitempty"`  // how often history was lost
	Seek  *Seek  `json:"seek,omitempty"`  // set until a segment is complete after it
	// Repeat is set from a seek on, until the feed is delivered up to the last marker again.
	Repeat *Repeat `json:"repeat,omitempty"`
	// Replaced counts seeks that another one replaced before they were carried out: no marker names them. For verify.
	Replaced int64 `json:"replaced,omitempty"`
	Scan     *Scan `json:"scan,omitempty"` // the last one, also when it is done
	// Settings are those that must not change while records exist, as "NAME" -> value.
	Settings map[string]string `json:"settings"`
	CatchUp  *CatchUp          `json:"catch_up,omitempty"` // nil at the end of the feed, and while it is not known
	// Topics holds the partition counts that keys are spread over until the next marker (I5).
	Topics map[string]int32 `json:"topics"`
	// KeySchemas holds the ids of the schemas that keys are written with: they are in the keys, and so choose
	// the partition.
	KeySchemas map[string]int `json:"key_schemas,omitempty"`
}

// Stretch is a part of the feed: the segments behind After, up to and with To.
type Stretch struct {
	After source.Segment `json:"after"`
	To    source.Segment `json:"to"`
	From  string         `json:"from,omitempty"` // events before it are left out, "<ns>.<10 digits>"; "" is none
}

// Has reports whether a segment is in the stretch.
func (s Stretch) Has(seg source.Segment) bool {
	return seg.Compare(s.After) > 0 && seg.Compare(s.To) <= 0
}

// extends reports whether s and next, which does not begin before it, have the events of one stretch.
func (s Stretch) extends(next Stretch) bool {
	const timed = 2 * time.Hour // behind its begin, a stretch has no events from before From
	if next.After.Compare(s.To) > 0 {
		return false
	}
	leaves := next.From != "" && s.To.Time().Before(next.After.Time().Add(timed)) // what s does not have either
	lacks := s.From != "" && next.After.Time().Before(s.After.Time().Add(timed))  // what next has
	return next.From == s.From || !leaves && !lacks
}

// mostEarlier bounds a frontier of many seeks, which forgets its first stretches.
const mostEarlier = 64

// Delivered returns the stretches of the feed that are delivered, by their begin. There is a hole between any two,
// unless they begin at different times.
func (f *Frontier) Delivered() (all []Stretch) {
	stretches := append(slices.Clone(f.Earlier), Stretch{f.Since, f.Completed, f.Start})
	slices.SortStableFunc(stretches, func(a, b Stretch) int { return a.After.Compare(b.After) })
	for _, s := range stretches {
		if s.To.Compare(s.After) <= 0 {
			continue // nothing is delivered since a seek
		}
		if n := len(all); n == 0 || !all[n-1].extends(s) {
			all = append(all, s)
		} else if s.To.Compare(all[n-1].To) > 0 {
			all[n-1].To = s.To
		}
	}
	return all
}

// Skipped returns the stretches that seeks have left out: the holes in what is delivered, and the one before the place
// of a seek behind which nothing is delivered yet. From is that of what follows.
func (f *Frontier) Skipped() (all []Stretch) {
	var last source.Segment
	for i, next := range append(f.Delivered(), Stretch{f.Since, f.Since, f.Start}) {
		if i > 0 && next.After.Compare(last) > 0 {
			all = append(all, Stretch{last, next.After, next.From})
		}
		if next.To.Compare(last) > 0 {
			last = next.To
		}
	}
	return all
}

// Leap moves f to behind a segment, and takes down what was delivered before.
func (f *Frontier) Leap(after source.Segment) {
	f.Earlier = f.Delivered()
	f.Earlier = f.Earlier[max(0, len(f.Earlier)-mostEarlier):]
	f.Completed, f.Since = after, after
}

// At is the segment that is being delivered, or, where there is none, the one before it; none before the first.
func (f *Frontier) At() source.Segment {
	if f.Current == (source.Segment{}) {
		return f.Completed
	}
	return f.Current
}

// Behind reports whether f is older than the frontier that a cursor of its epoch was written under. Without
// transactions, a former owner of lease 0 that was paused can write an old frontier behind newer ones. Compaction then
// removes the newer ones.
func (f *Frontier) Behind(cursors []*Cursor) bool {
	for _, c := range cursors {
		if c != nil && c.Beyond(f) {
			return true
		}
	}
	return false
}

// Repeat is about the topics that are found in what a seek repeats, as where a filter selects more by now. The seek has
// told all others, at their last marker, that records at or below it follow. These have no such marker. So theirs are
// lower: they say what is delivered since the seek (I6).
type Repeat struct {
	Topics   []string `json:"topics,omitempty"`
	Resolved string   `json:"resolved,omitempty"` // the last marker of Topics, "" before the first
}

// Found returns the topics that are found in what a seek repeats.
func (f *Frontier) Found() []string {
	if f.Repeat == nil {
		return nil
	}
	return f.Repeat.Topics
}

// Adopt takes over the pins of topics that the frontier does not know. Its maps may be those of another
// frontier, and stay.
func (f *Frontier) Adopt(pins map[string]Pin) {
	if len(pins) == 0 {
		return
	}
	topics, schemas, found := map[string]int32{}, map[string]int{}, slices.Clone(f.Found())
	for topic, pin := range pins {
		topics[topic] = pin.Partitions
		if _, known := f.Topics[topic]; !known {
			found = append(found, topic)
		}
		if pin.KeySchema != 0 {
			schemas[topic] = pin.KeySchema
		}
	}
	maps.Copy(topics, f.Topics) // what it knows stays
	maps.Copy(schemas, f.KeySchemas)
	f.Topics, f.KeySchemas = topics, schemas
	if f.Repeat != nil {
		slices.Sort(found)
		f.Repeat = &Repeat{Topics: found, Resolved: f.Repeat.Resolved}
	}
}

// Over reports whether nothing follows: all is delivered, and the markers are written.
func (f *Frontier) Over() bool { return f != nil && f.Ended && !f.Owed }

// Gap is history that retention removed before it was read: from segment From up to To, which is there.
type Gap struct {
	From source.Segment `json:"from"`
	To   source.Segment `json:"to"`
}

// Seek is a move of the frontier that an operator asked for.
type Seek struct {
	From source.Segment `json:"from"` // where delivery stood
	To   string         `json:"to"`   // a segment, a time as "<ns>.<10 digits>", or "earliest"
	Told bool           `json:"told"` // a marker with the header "seek" is written
}

// owner is the record that ends an acquisition.
type owner struct {
	Version int       `json:"version"`
	Owner   string    `json:"owner"`
	Time    time.Time `json:"timestamp"`
}
