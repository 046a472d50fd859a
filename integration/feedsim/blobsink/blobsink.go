// Package blobsink writes simulated feeds into blob storage.
package blobsink

import (
	"bytes"
	"context"
	"fmt"
	"io"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobfeed/integration/feedsim"
)

// Sink is a container.
type Sink struct{ cl *container.Client }

var _ feedsim.Sink = (*Sink)(nil)

// New makes the container if it is missing.
func New(ctx context.Context, cl *container.Client) (*Sink, error) {
	if _, err := cl.Create(ctx, nil); err != nil && !bloberror.HasCode(err, bloberror.ContainerAlreadyExists) {
		return nil, fmt.Errorf("creating the container: %w", err)
	}
	return &Sink{cl}, nil
}

// Put implements feedsim.Sink.
func (s *Sink) Put(ctx context.Context, name string, data []byte) error {
	_, err := s.cl.NewBlockBlobClient(name).UploadBuffer(ctx, data, nil)
	return err
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
			if _, err = cl.Create(ctx, nil); err == nil {
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

type body struct{ io.ReadSeeker }

func (body) Close() error { return nil }
