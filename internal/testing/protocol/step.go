package protocol

import (
	"fmt"
	"strings"
)

type step[S comparable] struct {
	to    S
	label label
	// progress says that this step is taken sooner or later. A fault is not: the protocol may not need it to get on.
	progress bool
}

// label says what happened. It is formatted only for a trace.
type label struct {
	format string
	n      [8]uint8
}

func say(format string, n ...uint8) label {
	l := label{format: format}
	copy(l.n[:], n)
	return l
}

func (l label) String() string {
	var args []any
	for k := range strings.Count(l.format, "%") {
		args = append(args, l.n[k])
	}
	return fmt.Sprintf(l.format, args...)
}

// deadEnd is broken by a state from which the feed cannot be delivered any more.
const deadEnd = "dead end"
