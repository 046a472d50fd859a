package mutation

// Points are where MUTATION_CRASH can end the process, in the order of a transaction's steps. Those of cursor are of a lease's
// transactions, of frontier those that begin or complete a segment, of bundle those of many segments.
func Points() (all []string) {
	for _, step := range []string{"acquire", "cursor", "frontier", "bundle"} {
		all = append(all, step+".records", step+".flushed", step+".ended", step+".read")
	}
	return append(all, "acquire.begun", "release.begun", "release.done", "leave.begun", "leave.done")
}
