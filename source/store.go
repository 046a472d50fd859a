package source

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Store is a container of blobs, or a directory laid out like one. Names have no leading slash.
type Store interface {
	// List yields what begins with prefix, in the order of the names' bytes. With delimiter "/", names that have one
	// after the prefix are folded into one entry each, up to and with the delimiter.
	List(ctx context.Context, prefix, delimiter string) iter.Seq2[Entry, error]
	// ReadAt fills p with the bytes from offset on and returns how many. It returns fewer than len(p) without an error
	// only at the end of the blob, and none behind it. Of a blob that does not exist it says ErrNotFound.
	ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error)
}

// Entry is a line of a listing.
type Entry struct {
	Name     string
	Size     int64
	Modified time.Time // zero if the store does not say
	IsPrefix bool      // Name stands for all that begin with it
}

type busyKey struct{}

// WithBusy returns a context for requests to a Store, which call busy if the service is overloaded. A request is
// repeated all the same, so busy may be called several times, and the request may succeed.
func WithBusy(ctx context.Context, busy func()) context.Context {
	return context.WithValue(ctx, busyKey{}, busy)
}

// Busy is for a Store: the service has rejected a request of ctx because it is overloaded.
func Busy(ctx context.Context) {
	if busy, ok := ctx.Value(busyKey{}).(func()); ok {
		busy()
	}
}

var (
	// ErrNotFound is the error of a Store for a blob that does not exist.
	ErrNotFound = errors.New("not found")
	// ErrNoFeed is the error of a Store that is not the container of a feed: the feed was never enabled, or a directory
	// holds something else.
	ErrNoFeed = errors.New("there is no change feed")
)
