// Package feedsim writes change feeds as Azure does, of any size, and tells which events a reader has to find.
//
// Write writes the feed of a Spec at once. A Feed is the same one step at a time, as the service writes while others
// read:
//
//	Open      the next segment: its manifest says Publishing, then meta/segments.json names it
//	Append    events, as whole blocks at the end of the shards' chunks; with Spec.TornAppends in two appends cut
//	          anywhere
//	Reveal    shards that the manifest did not list so far, Spec.LateShards, and what has happened in them
//	Roll      the next chunk of all shards, or of some
//	Next      what happens at the hour: the next segment appears, then the one before it turns Finalized;
//	          Turn and Settle are its halves
//	Finalize  the open segment turns Finalized without a next one, as no real feed does, but as tests want
//
// # What holds in every feed
//
//   - The same Spec and the same calls give the same bytes. TornAppends changes neither bytes nor events.
//   - In a segment a blob is in one shard; in the next segment it may be in another. No event lacks a shard.
//   - A blob's events have rising times, sequencers and Seq. Between the blobs of a chunk neither times nor
//     sequencers are sorted.
//   - Event times are inside the segment's interval. Ids are unique.
//   - As in real files, block counts and sizes are overlong varints, and the sync marker is a constant. The
//     schemas are those of real files, too.
//   - Some blobs have names that break readers which decode or split them.
//
// # A new event type
//
// If the schema of version 5 has its type and api: in mix.go add a constant above control, a row in of, a field of Mix,
// and its weight in weights and DefaultMix. What is special in its record goes to record.go and TestDetails. If only
// version 6 has it, TestWriteHasEverything must write that version too. A new weight changes the feed of every seed.
//
// An event is announced when it is made, before it is in the sink. So a test expects it before a reader can
// find it. If an error keeps an event out of the sink, the event was announced all the same. After an error
// the feed is of no use.
package feedsim
