// Package resolved decides when a segment is complete and what may be promised then.
//
// A marker with time R on a partition says: no record with updated <= R follows here (I6). Segment N is complete when
// every shard of it was read to the end of a listing that was taken after its manifest said "Finalized" (I7), and the
// cursors that say so are committed. The feed puts events into the segment of their hour, exact to 15 minutes, so what
// may be promised is the end of N less that slack. It never falls, and is never zero.
package resolved
