// Package mutation takes safety out of the bridge, to see that the tests miss it. It does so only in a program
// that is built with the tag "mutation": in any other its switches are constants, and the compiler leaves
// nothing of it.
//
// MUTATION names what is taken out:
//
//	fence      a transactional id for each instance, so that nobody fences anybody
//	read_first the cursor is read before the fence, not after it
//	barrier    the next segment, and the marker, without waiting for all shards
//
// MUTATION_CRASH names a point between two steps, as Points lists them: the process ends when it comes there,
// as kill -9 ends it.
//
// MUTATION_GATE is a path. Before the fence an acquisition of lease p creates <path>.<p> and waits until <path>
// exists: what happens between the moments becomes a test's to choose. By itself it takes nothing out.
package mutation
