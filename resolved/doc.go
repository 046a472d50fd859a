// Package resolved decides when a segment is complete, what may be promised then, and which markers say so.
//
// A marker with time R on a partition says: no record with updated <= R follows here (I6). Segment N is complete when
// every shard of it was read to the end of a listing that was taken after its manifest said "Finalized" (I7), and the
// cursors that say so are committed. An event can lie up to Slack outside the interval of its segment, so what may be
// promised is the end of N less that slack. It never falls, and is never zero.
package resolved
