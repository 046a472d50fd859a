package bridge

import "fmt"

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

// TooLargeError is a record that the topics do not all take: one producer writes to all, with one limit.
type TooLargeError struct {
	Topic       string
	Size, Limit int // bytes, as a batch of one record
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("its record for topic %s has %d bytes, and the smallest max.message.bytes of the topics in use is %d: raise it, or set BRIDGE_ON_ERROR=dead_letter", e.Topic, e.Size, e.Limit)
}

func shardText(shard int) string { return fmt.Sprintf("%02d", shard) }
