// Package feedsim writes change feeds as Azure does, of any size, and tells which events a reader has to find.
//
// A Feed is written segment by segment: Open, Append, Roll and Finalize are what the service does in an hour; Write does it
// for a whole Spec. All of it follows from Spec.Seed. Within a segment a blob's events are in one shard, with rising times
// and sequence numbers; between blobs of a chunk neither is sorted. Block counts and sizes are the overlong varints, and
// the sync marker is the constant, of real files.
package feedsim
