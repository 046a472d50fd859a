// Package mutation takes safety out of the bridge, to show that the tests notice. It does so only in a
// program that is built with the tag "mutation". In any other program its switches are constants, and the
// compiler leaves nothing of them.
//
// MUTATION names what is taken out:
//
//	fence      a transactional id for each instance, so that nobody fences anybody
//	read_first the cursor is read before the fence, not after it
//	barrier    the next segment, and the marker, without waiting for all shards
//	split      the records and markers of a change are committed before its documents
//	early      the next segment of a listing is named by an older look at the current one
//	believe    lost history is believed at once, without another look behind another fence
//	hold       events are delivered while other leases list in a round of a scan
//
// MUTATION_CRASH names a point between two steps, as Points lists them: the process ends when it comes there,
// as kill -9 ends it.
//
// MUTATION_PANIC is a kind of goroutine, as internal/crash has them. The first one of the kind panics.
//
// MUTATION_GATE is a path. Before the fence, an acquisition of lease p creates <path>.<p> and waits until
// <path> exists. So a test chooses what happens in between. The gate itself takes nothing out.
package mutation
