package pipeline

import "fmt"

// EventError is an event that cannot become a record: where it is, and why.
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

// RowError is a blob of a listing that cannot become a record.
type RowError struct {
	Subject string
	Err     error
}

func (e *RowError) Error() string {
	return fmt.Sprintf("encoding the row of %.300s: %v", e.Subject, e.Err)
}

func (e *RowError) Unwrap() error { return e.Err }

// TooLargeError is a record that the topics do not all take: one producer writes to all, with one limit.
type TooLargeError struct {
	Topic       string
	Size, Limit int // bytes, as a batch of one record
}

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("its record for topic %s has %d bytes, and the smallest max.message.bytes of the topics in use "+
		"is %d", e.Topic, e.Size, e.Limit)
}

// BlockTooLargeError is an event of a block whose other records take all the memory that a block may have.
type BlockTooLargeError struct{ Limit int }

func (e *BlockTooLargeError) Error() string {
	return fmt.Sprintf("the records of its block take more than %d bytes: raise GOMEMLIMIT, "+
		"or the memory of the container", e.Limit)
}

// EncoderError is a topic without an encoder: mostly the registry lacks its schema, rejects it, or is down.
type EncoderError struct{ Err error }

func (e *EncoderError) Error() string { return e.Err.Error() }
func (e *EncoderError) Unwrap() error { return e.Err }

// StayError ends the run of a shard of an open segment whose failure nothing can be done about yet: damage, or a topic
// without an encoder. The shard stays where it is until the next pass.
type StayError struct{ Err error }

func (e *StayError) Error() string { return e.Err.Error() }
func (e *StayError) Unwrap() error { return e.Err }
