// Package source reads the change feed of an Azure Storage account: container $blobchangefeed, or a directory laid out
// like it.
//
// The feed is a sequence of segments, usually an hour each. A segment has shards, which hold disjoint sets of blobs; a
// shard has chunks, Avro files that grow while the segment is open. Order is promised per blob only: all events of a
// segment come after those of the segments before it, and within a shard the file order is the order. Event times and
// sequence numbers are not sorted in a chunk.
//
// A segment is "Publishing", then "Finalized". Its last events may be appended just before it turns, so to read all of
// it, in this order: read the manifest, list the shard (ShardReader.Poll), read to the end of that listing
// (ShardReader.Next until io.EOF). If the manifest said Finalized, that was all (I7).
//
// ShardReader.Position is where to resume after a restart, always just after a whole block. A missing chunk, a damaged
// block or a truncated file is an error that names blob and offset. Nothing is skipped (I8).
//
// The package reads no clock. The feed itself says how far it may be read (LastConsumable).
package source
