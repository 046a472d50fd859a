package judge

// trial is a topic while it is judged.
type trial struct {
	*subject
	state  *progressState // nil: the topic has none
	pass   *feedPass      // nil: without --feed
	feed   *comparison    // of the pass
	checks *checks
}

// try returns a trial of a topic that a reading of the feed is compared with.
func try(s *subject, state *progressState, pass *feedPass) *trial {
	t := &trial{subject: s, state: state, pass: pass}
	if pass != nil {
		t.feed = pass.of[s.name]
	}
	return t
}
