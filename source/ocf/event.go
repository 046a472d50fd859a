package ocf

// Event is one record of the change feed, in the names of the feed's own schema.
//
// An Event is filled again and again: Plan.Decode resets every field and keeps the capacity of the slices.
// Strings are substrings of the decoded block, so they stay valid when the Event is reused, and keep the block alive
// as long as one of them is held. A field the writer schema lacks, a null and an empty string all read as "".
type Event struct {
	SchemaVersion int64
	Topic         string
	Subject       string // /blobServices/default/containers/{container}/blobs/{blob}, verbatim
	EventType     string // enum symbol of the file's own schema; unknown symbols pass through
	EventTime     string // RFC 3339, seven fractional digits in every file seen
	ID            string

	API              string
	ClientRequestID  string
	RequestID        string
	ETag             string
	ContentType      string
	ContentLength    int64
	HasContentLength bool // false where the writer schema has no such field, or null
	BlobType         string
	BlobVersion      string
	ContainerVersion string
	BlobTier         string
	URL              string
	Sequencer        string
	Snapshot         string

	PreviousInfo          []Pair
	AsyncOperationInfo    []Pair
	RestorePointMarker    []Pair
	BlobPropertiesUpdated []PropertyChange
	BlobTagsUpdated       []TagSet

	// Extra holds the fields this package does not know, in file order: strings as they are, bytes in base64, other
	// types as JSON text with sorted keys. A known name at the other level, or with a type that doesn't fit, is such a
	// field too. Fields of the record "data" and of the envelope share it. Null fields are left out.
	Extra []Pair
}

// Pair is one entry of an Avro map of strings, in the file's order.
type Pair struct{ Name, Value string }

// PropertyChange is one entry of blobPropertiesUpdated.
type PropertyChange struct{ Name, Current, Previous string }

// TagSet is one entry of blobTagsUpdated; Name is "previous" or "current".
type TagSet struct {
	Name string
	Tags []Pair
}
