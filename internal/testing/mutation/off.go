//go:build !mutation

package mutation

import "context"

// The switches.
const (
	NoFence   = false
	ReadFirst = false
	NoBarrier = false
	Split     = false
	Early     = false
	Believe   = false
	NoHold    = false
)

// Crash does nothing.
func Crash(string, string) {}

// Panic does nothing.
func Panic(string) {}

// Gate does nothing.
func Gate(context.Context, int32) error { return nil }
