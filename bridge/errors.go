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

// TooLargeError is a record that the topic does not take.
type TooLargeError struct {
	Topic       string
	Size, Limit int // bytes, as a batch of one record
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("its record has %d bytes, and topic %s takes %d: raise max.message.bytes of the topic, or set BRIDGE_ON_ERROR=dead_letter", e.Size, e.Topic, e.Limit)
}

func shardText(shard int) string { return fmt.Sprintf("%02d", shard) }
