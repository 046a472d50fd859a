// Package azure is a source.Store over Azure Blob Storage, or Azurite.
package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobfeed/source"
	"blobfeed/source/azure/listing"
)

// Store reads the feed's container. It is safe for concurrent use.
type Store struct {
	client      atomic.Pointer[container.Client]
	id, account string

	mu      sync.Mutex
	config  Config // as the client was made
	renewed time.Time

	inventory *Inventory // nil without one
}

var _ source.Store = (*Store)(nil)

// ID identifies the account: host and path in lower case, without credentials.
func (s *Store) ID() string { return s.id }

// Account is the account's name, or "" if the settings do not have it.
func (s *Store) Account() string { return s.account }

// Emulated reports whether this is an emulator's container. An emulator writes no feed, so it is a copy.
func (s *Store) Emulated() bool { return strings.Contains(s.id, "/") } // only Azurite has the account in the path

// List implements source.Store.
func (s *Store) List(ctx context.Context, prefix, delimiter string) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		marker := ""
		for range maxPages { // I9: also of a service that always has another page
			page, err := s.page(ctx, prefix, delimiter, marker)
			if err != nil {
				yield(source.Entry{}, err)
				return
			}
			for _, e := range entries(page, delimiter != "") {
				if !yield(e, nil) {
					return
				}
			}
			if marker = page.Marker; marker == "" {
				return
			}
		}
		yield(source.Entry{}, errPages)
	}
}

// page makes one request.
func (s *Store) page(ctx context.Context, prefix, delimiter, marker string) (_ *listing.Page, err error) {
	a := answer{decode: true, all: true}
	ctx = a.with(ctx)
	most := new(int32(pageSize))
	if cl := s.client.Load(); delimiter == "" {
		o := container.ListBlobsFlatOptions{Prefix: &prefix, Marker: some(marker), MaxResults: most}
		_, err = cl.NewListBlobsFlatPager(&o).NextPage(ctx)
	} else {
		o := container.ListBlobsHierarchyOptions{Prefix: &prefix, Marker: some(marker), MaxResults: most}
		_, err = cl.NewListBlobsHierarchyPager(delimiter, &o).NextPage(ctx)
	}
	if err != nil {
		return nil, s.failed(err)
	}
	return a.page, a.err
}

// entries returns the blobs of a page, and the prefixes if they were asked for, in one order, in which they need not
// come.
func entries(p *listing.Page, prefixes bool) (list []source.Entry) {
	for _, b := range p.Blobs {
		list = append(list, source.Entry{Name: b.Name, Size: b.Length, Modified: b.Modified})
	}
	for _, prefix := range p.Prefixes {
		if prefixes {
			list = append(list, source.Entry{Name: prefix, IsPrefix: true})
		}
	}
	slices.SortFunc(list, func(a, b source.Entry) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// bodyAttempts is how often in a row a body may break off without a byte, and how many versions of a blob a read may
// meet. Each attempt asks for the rest. The SDK
// retries only until it has the headers.
const bodyAttempts = 5

// ReadAt implements source.Store. It does not pin the ETag of append blobs, which grow but keep their bytes. The
// service rewrites the other blobs, the documents, in place: ReadAt discards a mixture of two versions.
func (s *Store) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	have, version, versions := 0, "", 1
	for attempt := 1; ; attempt++ {
		n, a, err := s.read(ctx, name, p[have:], offset+int64(have))
		if have > 0 && n > 0 && a.version != version {
			if versions++; versions > bodyAttempts { // else it never ended: each version brings bytes, and breaks off
				return 0, s.failed(errRewritten)
			}
			have, version = 0, ""
			continue
		}
		have += n
		if n > 0 {
			version = a.version
			attempt = 0 // each such attempt brings bytes of this version, so the loop ends
		}
		if err == nil && (have == len(p) || offset+int64(have) >= a.size) {
			return have, nil
		}
		if err == nil {
			err = &bodyError{io.ErrUnexpectedEOF}
		}
		if !errors.As(err, new(*bodyError)) || ctx.Err() != nil || attempt == bodyAttempts {
			return 0, s.failed(err)
		}
	}
}

var errRewritten = fmt.Errorf("the blob had another ETag %d times while it was read: "+
	"check proxies on the way to the storage service", bodyAttempts)

// bodyError is a body that broke off.
type bodyError struct{ err error }

func (e *bodyError) Error() string { return "the body broke off: " + e.err.Error() }
func (e *bodyError) Unwrap() error { return e.err }

// about is what an answer says about the blob.
type about struct {
	size    int64  // 0 says that the offset is at its end, for which Azure says 416 and Azurite sends an empty body
	version string // the ETag of what may be rewritten; "" of append blobs
}

// read makes one request.
func (s *Store) read(ctx context.Context, name string, p []byte, offset int64) (n int, a about, err error) {
	resp, err := s.client.Load().NewBlobClient(name).DownloadStream(ctx,
		&blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: offset, Count: int64(len(p))}})
	if bloberror.HasCode(err, bloberror.InvalidRange) {
		return 0, about{}, nil
	}
	if err != nil {
		return 0, about{}, err
	}
	defer resp.Body.Close()
	if resp.ContentLength != nil {
		if *resp.ContentLength < 0 { // HTTP/2 carries the header as the server sends it
			return 0, about{}, fmt.Errorf("the storage service answered with the length %d: "+
				"check proxies on the way to it", *resp.ContentLength)
		}
		p = p[:min(int64(len(p)), *resp.ContentLength)]
	}
	if len(p) == 0 {
		return 0, about{}, nil
	}
	if resp.ETag != nil && (resp.BlobType == nil || *resp.BlobType != blob.BlobTypeAppendBlob) {
		a.version = string(*resp.ETag)
	}
	// A proxy may drop the range from the request and send the blob from its begin.
	got := "none"
	if resp.ContentRange != nil {
		got = *resp.ContentRange
	}
	var from, to int64
	if _, err := fmt.Sscanf(got, "bytes %d-%d/%d", &from, &to, &a.size); err != nil || from != offset {
		return 0, about{}, fmt.Errorf("requested the bytes from %d on, but the answer has the range %.100q: "+
			"check proxies on the way to the storage service", offset, got)
	}
	if n, err = io.ReadFull(resp.Body, p); err != nil {
		err = &bodyError{err}
	}
	return n, a, err
}

// renewEvery limits how often the settings are read while the service rejects every request.
const renewEvery = 5 * time.Second

// failed explains err. If the service rejects the credentials, it reads them again: signatures expire, keys are
// rotated, and the operator replaces the file. It does not repeat the request, since the caller retries anyway.
func (s *Store) failed(err error) error {
	if status, is := errors.AsType[*azcore.ResponseError](err); is && (status.StatusCode == http.StatusForbidden ||
		status.StatusCode == http.StatusUnauthorized) {
		if rerr := s.renew(); rerr != nil {
			return fmt.Errorf("%w; renewing the credentials: %w", s.explain(err), rerr)
		}
	}
	return s.explain(err)
}

func (s *Store) explain(err error) error {
	s.mu.Lock()
	c := s.config
	s.mu.Unlock()
	return c.explain(err)
}

func (s *Store) renew() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Renew == nil || time.Since(s.renewed) < renewEvery {
		return nil
	}
	s.renewed = time.Now()
	c, err := s.config.Renew()
	if err != nil {
		return err
	}
	if c.Key == s.config.Key && c.SAS == s.config.SAS && c.ConnectionString == s.config.ConnectionString &&
		c.ClientSecret == s.config.ClientSecret {
		return nil
	}
	cl, _, err := c.client(Container)
	if err != nil {
		return err
	}
	if s.inventory != nil {
		if err := s.inventory.connect(&c); err != nil {
			return err
		}
	}
	c.Renew = s.config.Renew
	s.config = c
	s.client.Store(cl)
	return nil
}
