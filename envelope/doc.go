// Package envelope turns events of the change feed into Kafka records in the form of CockroachDB's changefeeds.
//
// # What an event becomes
//
// The row is the blob; its key is the path, "container/blob", with the blob's name as the service wrote it. Events are
// classified by what they do to the row:
//
//	Upsert   the base blob was created or undeleted, or its properties, metadata, tags or tier changed
//	Delete   the base blob was deleted
//	Other    no change of the row: snapshots and what happens to them, the start of an asynchronous operation, restore
//	         markers, events of containers, and every type this package does not know
//	Control  the service's own; never emitted
//
// With EventsState, Upsert and Delete are emitted; with EventsAll, all but Control. A column is null if the
// feed has no such field, or if the field is null or an empty text.
//
// A row of a scan comes from a listing, not from an event. It is an Upsert, or the Delete of a key that a sweep did not
// find. It has the header scan, and the columns that only events have are null.
//
// # Bytes
//
// Rows are written as CockroachDB writes JSON: keys are sorted, with ": " and ", " between, and nothing is
// escaped for HTML. Control characters become \u00XX, in lower case. Bytes that are not UTF-8 become \ufffd.
// Markers are compact, as CockroachDB's are.
//
// An Encoder is immutable and safe for concurrent use. Append does not allocate once the buffers have grown.
package envelope
