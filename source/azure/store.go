package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobfeed/source"
)

// Store reads the feed's container. It is safe for concurrent use.
type Store struct {
	cl          *container.Client
	id, account string
}

var _ source.Store = (*Store)(nil)

// ID identifies the account: host and path in lower case, without credentials.
func (s *Store) ID() string { return s.id }

// Account is the account's name, as far as the settings tell.
func (s *Store) Account() string { return s.account }

// List implements source.Store.
func (s *Store) List(ctx context.Context, prefix, delimiter string) iter.Seq2[source.Entry, error] {
	if delimiter == "" {
		return s.flat(ctx, prefix)
	}
	return s.hierarchy(ctx, prefix, delimiter)
}

func (s *Store) flat(ctx context.Context, prefix string) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		pager := s.cl.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix})
		for pager.More() {
			page, err := pager.NextPage(ctx)
			if err != nil {
				yield(source.Entry{}, explain(err))
				return
			}
			for _, item := range page.Segment.BlobItems {
				if !yield(entry(item), nil) {
					return
				}
			}
		}
	}
}

// hierarchy merges the prefixes and blobs of each page, which come apart and each in order.
func (s *Store) hierarchy(ctx context.Context, prefix, delimiter string) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		pager := s.cl.NewListBlobsHierarchyPager(delimiter, &container.ListBlobsHierarchyOptions{Prefix: &prefix})
		for pager.More() {
			page, err := pager.NextPage(ctx)
			if err != nil {
				yield(source.Entry{}, explain(err))
				return
			}
			prefixes, items := page.Segment.BlobPrefixes, page.Segment.BlobItems
			for len(prefixes)+len(items) > 0 {
				var e source.Entry
				if len(items) == 0 || len(prefixes) > 0 && *prefixes[0].Name < *items[0].Name {
					e, prefixes = source.Entry{Name: *prefixes[0].Name, IsPrefix: true}, prefixes[1:]
				} else {
					e, items = entry(items[0]), items[1:]
				}
				if !yield(e, nil) {
					return
				}
			}
		}
	}
}

func entry(item *container.BlobItem) source.Entry {
	e := source.Entry{Name: *item.Name}
	if p := item.Properties; p != nil {
		if p.ContentLength != nil {
			e.Size = *p.ContentLength
		}
		if p.ETag != nil {
			e.ETag = string(*p.ETag)
		}
	}
	return e
}

// bodyAttempts is how often a body that breaks off is asked for again from where it broke. The SDK's own retries end
// with the headers.
const bodyAttempts = 5

// Read implements source.Store. It does not pin the blob's ETag: append blobs grow, and what was read stays.
func (s *Store) Read(ctx context.Context, name string, offset, n int64) ([]byte, error) {
	var b []byte
	for attempt := 1; ; attempt++ {
		more, size, err := s.read(ctx, name, offset+int64(len(b)), n-int64(len(b)))
		b = append(b, more...)
		if err == nil && (int64(len(b)) == n || offset+int64(len(b)) >= size) {
			return b, nil
		}
		if err == nil {
			err = io.ErrUnexpectedEOF
		}
		var status *azcore.ResponseError
		if errors.As(err, &status) || ctx.Err() != nil || attempt == bodyAttempts {
			return nil, explain(err)
		}
	}
}

// read makes one request. Size is the blob's. At the end of a blob Azure says 416, Azurite sends an empty body.
func (s *Store) read(ctx context.Context, name string, offset, n int64) (b []byte, size int64, err error) {
	resp, err := s.cl.NewBlobClient(name).DownloadStream(ctx, &blob.DownloadStreamOptions{Range: blob.HTTPRange{Offset: offset, Count: n}})
	if bloberror.HasCode(err, bloberror.InvalidRange) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer resp.Body.Close()
	size = total(resp.ContentRange)
	if resp.ContentLength != nil {
		if *resp.ContentLength == 0 {
			return nil, 0, nil
		}
		b = make([]byte, 0, min(*resp.ContentLength, n))
	}
	buf := b[:cap(b)]
	got, err := io.ReadFull(resp.Body, buf)
	return buf[:got], size, err
}

// total returns the blob's size from "bytes 0-9/100". If it is missing, what came is taken as all there is.
func total(contentRange *string) int64 {
	var from, to, size int64
	if contentRange == nil {
		return 0
	}
	if _, err := fmt.Sscanf(*contentRange, "bytes %d-%d/%d", &from, &to, &size); err != nil {
		return 0
	}
	return size
}

// explain maps what the service says to what a source.Store says, and shortens the SDK's page-long errors.
func explain(err error) error {
	if bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted) {
		return source.ErrNotEnabled
	}
	if bloberror.HasCode(err, bloberror.BlobNotFound) {
		return source.ErrNotFound
	}
	var status *azcore.ResponseError
	if errors.As(err, &status) {
		hint := ""
		if status.StatusCode == http.StatusForbidden || status.StatusCode == http.StatusUnauthorized {
			hint = ": the credentials need the role Storage Blob Data Reader on the account"
		}
		return fmt.Errorf("the storage service says %d %s%s", status.StatusCode, status.ErrorCode, hint)
	}
	return err
}
