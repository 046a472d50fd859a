// Package resolved decides when a segment is complete, what may be promised then, and which markers say so.
//
// A marker with time R on a partition says: no record with updated <= R follows here (I6). Segment N is
// complete when committed cursors say that each of its shards was read to the end of a listing. That listing
// was taken after the manifest said "Finalized" (I7).
//
// An event can lie up to Slack outside the interval of its segment. So the promised time is the end of N
// minus a slack, which is a setting (ResolvedSlack). The promised time never falls, and is never zero.
package resolved
