package mutation

// Points are where MUTATION_CRASH can end the process, in the order of a transaction's steps. Those of cursor are
// of a lease's transactions, of gap those in which one says that history is lost, of frontier those that begin or
// complete a segment, of bundle those of many segments. Those of intent begin a move, in the process of a verb,
// and those of move end it.
func Points() (all []string) {
	for _, step := range []string{"acquire", "cursor", "frontier", "bundle", "intent", "move", "gap"} {
		all = append(all, step+".records", step+".flushed", step+".ended", step+".read")
	}
	return append(all, "acquire.begun", "release.begun", "release.done", "leave.begun", "leave.done",
		"fences.begun", "fences.one", "fences.done", "gap.found")
}
