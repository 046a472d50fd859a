// Package envelope turns events of the change feed into Kafka records in the form of CockroachDB's changefeeds.
//
// # What an event becomes
//
// The row is the blob; its key is the path, "container/blob", with the blob's name as the service wrote it. Events are
// classified by what they do to the row:
//
//	Upsert   the base blob was created or undeleted, or its properties, metadata, tags, tier or content changed
//	Delete   the base blob was deleted
//	Other    no change of the row: a new snapshot or its tier, the start of an asynchronous operation, restore
//	         markers, access times, new containers and their properties
//	Unknown  a type without a rule, which may change the blob; the engine counts and reports it
//	Control  the service's own; never emitted
//
// With EventsState, Upsert and Delete are emitted; with EventsAll, all but Control. A column is null if the
// feed has no such field, or if the field is null or an empty text.
//
// A row of a scan comes from a listing, not from an event. It is an Upsert, or the Delete of a key that a sweep found
// to have no blob. It has the header scan, and the columns that only events have are null.
//
// # Bytes
//
// Rows are written as CockroachDB writes JSON: keys are sorted, with ": " and ", " between, and nothing is
// escaped for HTML. Tab, line feed and carriage return become \t, \n and \r, other control characters and U+2028 and
// U+2029 \uXXXX, in lower case. Bytes that are not UTF-8 become \ufffd. Markers are compact, as CockroachDB's are,
// unless they have a schema.
//
// # Adding a column
//
//  1. For a field of the feed, add a field to Event in source/ocf/event.go, with its name in the feed and its column as
//     tags. The decoder, rows, schemas and bridge dump follow the tags, and so do their tests. (A value of another type
//     than those in Event also needs a Shape in source/ocf/field.go, an op in plan.go, and a field in
//     envelope/field.go.)
//     For a value that is made of others, such as container, add a line to the first columns of blobs (columns.go). Its
//     function must not allocate. bridge dump prints events without it, so TestColumnsAreThoseOfRecords
//     (internal/dump/event_test.go) lists it.
//  2. Set the field in one event of made (fixture_test.go): otherwise every golden has null. If a listing has it, too,
//     add it to TestAppendRow (scan_test.go). Run go test ./envelope -update. A value other than null must be among the
//     changes in testdata and docs/events.md.
//  3. If an event says what the value was before, add the tag deletion, previous or property, a case in TestBefore
//     (encode_test.go), and a line under "The row before" in docs/events.md.
//  4. If it can hold personal data, add it to "Privacy" in docs/security.md. Add it to CHANGELOG.md: values move from
//     "extra" to the column. Run go test -short ./source/ocf ./envelope ./verify ./internal/dump ./internal.
//     Verify needs no change: it reads only the columns that tell events and blobs apart (verify/document.go).
//
// # Adding an event type
//
//  1. Add it to Classify in event.go, and to the kinds above. Test its kind in subject_test.go, and if snapshots can
//     have it, add it to TestSnapshots. Until then it is Unknown.
//  2. If it is an upsert, check op of the enriched envelope (columns.go), with a case in TestBefore (encode_test.go).
//  3. Add it to eventTypes in internal/config/validate.go, with a misspelling in TestFilterProblems (config_test.go).
//     Otherwise a name that differs by one or two letters from a known type is rejected.
//  4. Add it to "Event types" in docs/events.md. For an example value, add type and api to docTypes in
//     docs_test.go and, if neither the real feed nor made has such an event, the event to rare. Run
//     go test ./envelope -update. Add it to CHANGELOG.md.
//  5. A simulated feed has it only if a schema in internal/testing/feedsim/schemas has its type and api. These are the
//     schemas of real files: do not edit them. The comment of package feedsim says how to add it to the mix.
//  6. Run go test -short ./envelope ./internal/config ./internal/testing/feedsim.
//
// An Encoder is safe for concurrent use once PinKey was called, if at all. Append does not allocate once the buffers
// have grown.
package envelope
