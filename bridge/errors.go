package bridge

import (
	"errors"
	"fmt"
	"io"
)

// EventError is an event that can't be carried: where it is, and why.
type EventError struct {
	Blob   string
	Offset int64 // of its block
	Index  int   // in the block
	Err    error
}

func (e *EventError) Error() string {
	return fmt.Sprintf("encoding event %d of the block at %s:%d: %v", e.Index, e.Blob, e.Offset, e.Err)
}

func (e *EventError) Unwrap() error { return e.Err }

func isEOF(err error) bool { return errors.Is(err, io.EOF) }

func shardText(shard int) string { return fmt.Sprintf("%02d", shard) }
