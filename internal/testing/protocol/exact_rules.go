package protocol

// exactRules are the rules of the protocol. The fields above the line are rules; those below are known mistakes.
type exactRules struct {
	knownAtStart      bool // R1: a frontier counts once the view has passed the end that partition 0 had at the start
	knownAfterFence   bool // R1: the same after each fence
	phased            bool // R2f: a move is written as an intent first, and no segment is current until it is finished
	fenceOthers       bool // R2f: the keeper that finds an intent fences every other lease before it finishes the move
	waits             bool // every wait of a worker ends when its epoch, segment or lease is over
	ownLoss           bool // J: an owner believes in a loss only if it finds it again after another fence
	completeByCursors bool // J: a segment whose leases are all done is completed without its manifest
	gapByCursor       bool // G: a gap is recorded by the cursors of its owners, and the barrier passes it
	onceByState       bool // --once judges by committed cursors
	frozen            bool // the lease count is in the frontier
	listAgain         bool // a chunk that is gone leads to another look at the manifest

	keepCursors  bool // a cursor of an earlier epoch keeps its position
	voidFirst    bool // seek takes the cursors away before it moves the frontier
	tidyLate     bool // reset removes cursors after the intent
	cursorApart  bool // the cursor is in a transaction of its own, after that of its event
	readFirst    bool // the cursor is read before the fence
	noBarrier    bool // a segment is completed when it is finalized
	trustListing bool // the next segment of a listing is named without a look at the completed one
	trustOrder   bool // a bundle is committed without a look whether it follows the completed segment
	trustBundle  bool // a bundle is committed without a look whether it is still there
	trustEmpty   bool // a listing that shows no chunk of a shard means that it has no events
	retryFlush   bool // a flush is retried on a producer that has failed
}

func allExactRules() exactRules {
	return exactRules{
		knownAtStart: true, knownAfterFence: true, phased: true, fenceOthers: true, waits: true, ownLoss: true,
		completeByCursors: true, gapByCursor: true, onceByState: true, frozen: true, listAgain: true,
	}
}
