package source

import (
	"context"
	"errors"
	"iter"
)

// Store is a container of blobs, or a directory laid out like one. Names have no leading slash.
type Store interface {
	// List yields what begins with prefix, in the order of the names' bytes. With delimiter "/", names that have one
	// after the prefix are folded into one entry each, up to and with the delimiter.
	List(ctx context.Context, prefix, delimiter string) iter.Seq2[Entry, error]
	// Read returns the bytes from offset on, at most n. At the end of the blob it returns none and no error; it returns
	// fewer than n only there. Of a blob that does not exist it says ErrNotFound.
	Read(ctx context.Context, name string, offset, n int64) ([]byte, error)
}

// Entry is a line of a listing.
type Entry struct {
	Name     string
	Size     int64
	ETag     string
	IsPrefix bool // Name stands for all that begin with it
}

var (
	// ErrNotFound is what a Store says of a blob that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNotEnabled is what a Store says of a container that does not exist: the change feed was never enabled.
	ErrNotEnabled = errors.New("there is no change feed: enable it for the storage account (its container appears some minutes later)")
)
