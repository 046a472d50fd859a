package feedsim

import "math/rand/v2"

// Mix is how often each change occurs, as weights. What can't be is replaced: a blob that does not exist is created
// first, and what a schema version can't express is an overwrite.
type Mix struct {
	Created, Deleted, Undeleted int
	Properties, Metadata, Tags  int
	Tier                        int
	Async                       int // initiated operations: not yet a change
	Snapshot                    int // no change of the blob
	Control                     int // events that readers drop; they have no blob
}

// DefaultMix has all but Control.
var DefaultMix = Mix{Created: 60, Deleted: 12, Undeleted: 1, Properties: 8, Metadata: 5, Tags: 4, Tier: 4, Async: 2,
	Snapshot: 4}

// change is a kind of event.
type change uint8

const (
	created change = iota
	deleted
	undeleted
	properties
	metadata
	tags
	tier
	async
	snapshot
	control
	putBlocks // another way to create
	copied    // another way to create
	changes   // how many there are
)

// of tells what each change looks like in the feed: since which schema version, and what it does to the blob's row.
var of = [changes]struct {
	eventType, api string
	since          int
	state, delete  bool
}{
	created:    {"BlobCreated", "PutBlob", 1, true, false},
	putBlocks:  {"BlobCreated", "PutBlockList", 1, true, false},
	copied:     {"BlobCreated", "CopyBlob", 1, true, false},
	deleted:    {"BlobDeleted", "DeleteBlob", 1, true, true},
	undeleted:  {"BlobCreated", "UndeleteBlob", 4, true, false}, // under which type is nowhere documented
	properties: {"BlobPropertiesUpdated", "SetBlobProperties", 4, true, false},
	metadata:   {"BlobPropertiesUpdated", "SetBlobMetadata", 1, true, false}, // in version 1, BlobMetadataUpdated
	tags:       {"BlobPropertiesUpdated", "SetBlobTags", 5, true, false},
	tier:       {"BlobTierChanged", "SetBlobTier", 4, true, false},
	async:      {"BlobAsyncOperationInitiated", "SetBlobTier", 4, false, false},
	snapshot:   {"BlobSnapshotCreated", "SnapshotBlob", 4, false, false},
	control:    {"Control", "ControlEvent", 1, false, false},
}

func (m Mix) weights() [control + 1]int {
	return [...]int{created: m.Created, deleted: m.Deleted, undeleted: m.Undeleted, properties: m.Properties,
		metadata: m.Metadata,
		tags:     m.Tags, tier: m.Tier, async: m.Async, snapshot: m.Snapshot, control: m.Control}
}

func (m Mix) sum() int {
	sum := 0
	for _, w := range m.weights() {
		sum += max(w, 0)
	}
	return sum
}

// picker draws changes.
type picker []change // one of each weight

func newPicker(m Mix) picker {
	var p picker
	for c, w := range m.weights() {
		for range w {
			p = append(p, change(c))
		}
	}
	return p
}

func (p picker) pick(rng *rand.Rand) change { return p[rng.IntN(len(p))] }

// next returns what happens to a blob when c was drawn, under a schema version, and notes it.
func (b *blob) next(c change, version int, rng *rand.Rand) change {
	switch {
	case c == undeleted && b.life != gone, c != undeleted && b.life != present, of[c].since > version:
		c = created
	}
	switch c {
	case created:
		c = [...]change{created, created, putBlocks, copied}[rng.IntN(4)]
		b.life = present
	case undeleted:
		b.life = present
	case deleted:
		b.life = gone
	}
	return c
}
