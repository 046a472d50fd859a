package ocf

// Event is one record of the change feed, in the names of the feed's own schema.
//
// An Event is filled again and again: Header.Decode resets every field and keeps the capacity of the slices.
// Strings are substrings of the decoded block, so they stay valid when the Event is reused, and keep the block alive
// as long as one of them is held. A field the writer schema lacks, a null and an empty string all read as "".
//
// The tags are the one table of the fields that are known: the decoder, the columns of rows and the verb dump follow
// them. feed is the field's name in the feed's schema, column that in rows. The others say how an event tells what the
// value was before it: in a deletion, which repeats it, in previousInfo, or in blobPropertiesUpdated.
type Event struct {
	SchemaVersion int64  `feed:"schemaVersion" column:"schema_version"`
	Topic         string `feed:"topic"`
	Subject       string `feed:"subject"` // /blobServices/default/containers/{container}/blobs/{blob}, verbatim
	// EventType is a symbol of the file's own schema. Unknown symbols pass through.
	EventType string `feed:"eventType" column:"event_type"`
	EventTime string `feed:"eventTime" column:"event_time"` // RFC 3339, seven fractional digits in every file seen
	ID        string `feed:"id" column:"event_id"`

	API              string `feed:"data.api" column:"api"`
	ClientRequestID  string `feed:"data.clientRequestId" column:"client_request_id"`
	RequestID        string `feed:"data.requestId" column:"request_id"`
	ETag             string `feed:"data.etag" column:"etag"`
	ContentType      string `feed:"data.contentType" column:"content_type" deletion:"yes" property:"ContentType"`
	ContentLength    int64  `feed:"data.contentLength" column:"content_length" deletion:"yes"`
	HasContentLength bool   // false where the writer schema has no such field, or null
	BlobType         string `feed:"data.blobType" column:"blob_type" deletion:"yes"`
	BlobVersion      string `feed:"data.blobVersion" column:"blob_version" previous:"LastVersion"`
	ContainerVersion string `feed:"data.containerVersion" column:"container_version"`
	BlobTier         string `feed:"data.blobTier" column:"blob_tier" deletion:"yes" previous:"PreviousTier"`
	URL              string `feed:"data.url" column:"url" deletion:"yes"`
	Sequencer        string `feed:"data.sequencer" column:"sequencer"`
	Snapshot         string `feed:"data.snapshot" column:"snapshot"`

	PreviousInfo          []Pair           `feed:"data.previousInfo" column:"previous_info"`
	AsyncOperationInfo    []Pair           `feed:"data.asyncOperationInfo" column:"async_operation_info"`
	RestorePointMarker    []Pair           `feed:"data.restorePointMarker" column:"restore_point_marker"`
	BlobPropertiesUpdated []PropertyChange `feed:"data.blobPropertiesUpdated" column:"blob_properties_updated"`
	BlobTagsUpdated       []TagSet         `feed:"data.blobTagsUpdated" column:"blob_tags_updated"`

	// Extra holds the fields this package does not know, in file order: strings as they are, bytes in base64, other
	// types as JSON text with sorted keys. A known name at the other level, or with a type that doesn't fit, is such a
	// field too. Fields of the record "data" and of the envelope share it. Null fields are left out.
	Extra []Pair `column:"extra"`
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
