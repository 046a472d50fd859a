// Package blobsink writes simulated feeds into blob storage: Azurite's, or any that takes ordinary writes. A real
// account's $blobchangefeed does not.
package blobsink

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/appendblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobfeed/internal/testing/feedsim"
)

// Container is where the service keeps an account's feed.
const Container = "$blobchangefeed"

// Sink is a container. Manifests are block blobs and chunks are append blobs, as the service's.
type Sink struct{ cl *container.Client }

var _ feedsim.Sink = (*Sink)(nil)

// New makes the container if it is missing.
func New(ctx context.Context, cl *container.Client) (*Sink, error) {
	if _, err := cl.Create(ctx, nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return nil, fmt.Errorf("creating the container: %w", err)
	}
	return &Sink{cl}, nil
}

// Connect returns a Sink for the feed of the account of a connection string.
func Connect(ctx context.Context, connectionString string) (*Sink, error) {
	cl, err := container.NewClientFromConnectionString(connectionString, Container, nil)
	if err != nil {
		return nil, fmt.Errorf("reading the connection string: %w", err)
	}
	return New(ctx, cl)
}

// Put implements feedsim.Sink.
func (s *Sink) Put(ctx context.Context, name string, data []byte) error {
	if _, err := s.cl.NewBlockBlobClient(name).UploadBuffer(ctx, data, nil); err != nil {
		return fmt.Errorf("writing %s: %w", name, err)
	}
	return nil
}

// maxAppend is the service's limit of one append.
const maxAppend = 4 << 20

// Append implements feedsim.Sink.
func (s *Sink) Append(ctx context.Context, name string, data []byte) error {
	cl := s.cl.NewAppendBlobClient(name)
	for len(data) > 0 {
		part := data[:min(len(data), maxAppend)]
		_, err := cl.AppendBlock(ctx, body{bytes.NewReader(part)}, nil)
		if bloberror.HasCode(err, bloberror.BlobNotFound) {
			if err = create(ctx, cl); err == nil {
				continue
			}
		}
		if err != nil {
			return fmt.Errorf("appending to %s: %w", name, err)
		}
		data = data[len(part):]
	}
	return nil
}

func create(ctx context.Context, cl *appendblob.Client) error {
	contentType := "avro/binary"
	_, err := cl.Create(ctx, &appendblob.CreateOptions{HTTPHeaders: &blob.HTTPHeaders{BlobContentType: &contentType}})
	return err
}

type body struct{ io.ReadSeeker }

func (body) Close() error { return nil }
