// Package source reads the change feed of an Azure Storage account: container $blobchangefeed, or a directory laid out
// like it.
//
// The feed is a sequence of segments, usually an hour each. A segment has shards, which hold disjoint sets of
// blobs; a shard has chunks, Avro files that grow while the segment is open. Order is promised per blob only.
// A blob's events in one segment come after its events in earlier segments. Within a shard, a blob's events
// are in file order. Event times and sequence numbers are not sorted in a chunk.
//
// A segment is "Publishing", then "Finalized". Its last events may be appended just before it turns. So read
// in this order: the manifest, then a listing of the shard (ShardReader.Poll), then all events of that
// listing (ShardReader.Next until io.EOF). If the manifest said Finalized, that was all (I7).
//
// ShardReader.Position is where to resume after a restart, always just after a whole block. A damaged block, a
// truncated file, and a chunk that is missing before another or while it is read are errors that name blob and offset.
// Nothing is skipped (I8). What a copy lacks at the end of a shard, or whole shards, may go unnoticed (Lacks).
//
// The package reads no clock. The feed itself says how far it may be read (LastConsumable).
package source
