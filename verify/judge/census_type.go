package judge

import (
	"hash/maphash"
	"time"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/source/inventory"
	"blobfeed/verify"
)

// census compares the tables that topics make with the blobs that the account has. It reads the topics, then lists the
// account, and looks again at the keys that differ: most of them were changed between the two.
//
// A pass takes the keys with some values of their hash. If they are too many for memory, each pass takes half of them,
// and there are twice as many passes.
type census struct {
	v        *verification
	subjects []*subject
	only     *subject // of all keys; nil: a template gives each blob its topic
	state    *progressState
	values   verify.Values
	seed     maphash.Seed

	parts, part uint64            // this pass takes the keys of this part
	rows        map[uint64]uint64 // of this pass: what the topics have, by key
	lasts       map[lane]last     // the same by partition, of a topic that got partitions
	differences map[uint64]*difference
	lost        int64 // keys that differ, beyond those
	blobs       int64
	stray       map[string]int64 // blobs by a topic that the state does not know
	began       time.Time        // by the clock of the service
}

// difference is a key of which the topic and the account differed at first.
type difference struct {
	subject *subject
	key     string
	path    string
	listed  bool       // the account had it at first
	row     verify.Row // the last record of the key
	lasts   map[int32]keyLast
	blob    *inventory.Blob // in the account; nil: there is none
	pending bool            // the feed has an event of it that is not delivered
}

// keyLast is the last record of a key in a partition.
type keyLast struct {
	row verify.Row
	at  envelope.Timestamp
}

// comparedRow is what is compared of a row.
type comparedRow struct {
	etag   string
	length int64
}

// censusKey makes keys.
type censusKey struct {
	ev  source.Event
	buf []byte
	rec envelope.Record
}
