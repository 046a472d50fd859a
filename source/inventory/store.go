package inventory

import (
	"context"
	"errors"
	"iter"
	"time"
)

// Blob is a line of a listing: the current version of a blob. Strings of one page share memory, so a Blob that is kept
// keeps the text of its page.
type Blob struct {
	Name        string
	ETag        string // without quotes, as in events
	ContentType string
	BlobType    string // BlockBlob, PageBlob or AppendBlob
	Tier        string // "" if the account's default applies: the feed has null then
	Version     string // of accounts that keep versions
	Length      int64
	Modified    time.Time // Last-Modified, in whole seconds
}

// Page is an answer to List. It can have fewer blobs than requested, even none, and still a marker.
type Page struct {
	Blobs  []Blob
	Marker string    // where the next page begins; "" on the last page
	Served time.Time // when the service answered, by its own clock, in whole seconds
	Busy   bool      // the service rejected an attempt of this request because it was overloaded
}

// Containers is an answer to Containers.
type Containers struct {
	Names  []string
	Marker string
	Served time.Time
	Busy   bool
}

// Query says what to list.
type Query struct {
	Container, Prefix string
	From              string // the first name, inclusive; "" from the start
	Marker            string // of the page before; the other fields are as for that page
	Max               int    // blobs of a page
}

// Store is an account. It is safe for concurrent use. Its listings have no snapshots, old versions, deleted blobs, or
// uncommitted ones.
type Store interface {
	// Containers lists the containers that can hold blobs of users, in ascending order: also $root and $web, but none
	// of the service's own.
	Containers(ctx context.Context, marker string) (*Containers, error)
	// List returns a page of a container. Errors include ErrNoContainer and ErrMarker.
	List(ctx context.Context, q Query) (*Page, error)
	// Exists reports whether a container has a blob, and when the service answered. A missing container has none.
	Exists(ctx context.Context, container, name string) (bool, time.Time, error)
}

var (
	// ErrNoContainer is the error of a Store for a container that does not exist or is being deleted.
	ErrNoContainer = errors.New("the container does not exist")
	// ErrMarker is the error of a Store for a marker that the service rejects. Walk resumes by name.
	ErrMarker = errors.New("the service rejects the marker of a listing")
	// ErrBusy is the error of a Store for an overloaded service. Walk makes fewer requests at a time.
	ErrBusy = errors.New("the storage service is overloaded")
)

// Names yields the containers of an account, up to the first error. For counting: Walk also retries and checks order.
func Names(ctx context.Context, store Store) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for marker := ""; ; {
			page, err := store.Containers(ctx, marker)
			if err != nil {
				yield("", err)
				return
			}
			for _, name := range page.Names {
				if !yield(name, nil) {
					return
				}
			}
			if marker = page.Marker; marker == "" {
				return
			}
		}
	}
}

// countTimeout bounds a request that nothing depends on.
const countTimeout = 10 * time.Second

// Count returns how many containers are selected. It is for operators, so a failure is no matter: the listing itself
// reports it.
func Count(ctx context.Context, s Store, selects func(container string) bool) (count int) {
	ctx, cancel := context.WithTimeout(ctx, countTimeout)
	defer cancel()
	for name, err := range Names(ctx, s) {
		if err != nil {
			return 0
		}
		if selects(name) {
			count++
		}
	}
	return count
}
