package azure

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"

	"blobfeed/source"
	"blobfeed/source/azure/listing"
	"blobfeed/source/inventory"
)

// answer is what a request of an inventory got.
type answer struct {
	served time.Time
	busy   bool // an attempt was rejected because the service was overloaded

	decode bool // the answer is a page of blobs
	blobs  []inventory.Blob
	marker string
	err    error // of the page: repeating the request at once would not change it
}

type answerKey struct{}

// receiver fills the answer in a request's context. It decodes a page of blobs as it arrives, and gives the SDK an
// empty one: the SDK's decoder takes ten times as long. Signing, retries and timeouts stay those of the SDK, so the
// receiver works within an attempt.
type receiver struct{}

// with returns a context whose requests fill the answer.
func (a *answer) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, answerKey{}, a)
}

// Do implements policy.Policy.
func (receiver) Do(req *policy.Request) (*http.Response, error) {
	a, ok := req.Raw().Context().Value(answerKey{}).(*answer)
	if !ok {
		resp, err := req.Next()
		if err == nil && overloaded(resp.StatusCode) {
			source.Busy(req.Raw().Context())
		}
		return resp, final(err)
	}
	if a.decode {
		runtime.SkipBodyDownload(req)
	}
	resp, err := req.Next()
	if err != nil {
		return resp, final(err)
	}
	a.busy = a.busy || overloaded(resp.StatusCode)
	if a.served, err = http.ParseTime(resp.Header.Get("Date")); err != nil {
		a.served = time.Time{}
	}
	if !a.decode || resp.StatusCode != http.StatusOK {
		return resp, nil
	}
	defer resp.Body.Close()
	body := &counted{Reader: resp.Body}
	var damage *listing.DamageError
	a.blobs, a.marker, a.err = listing.Decode(body)
	if err := a.err; err != nil && !errors.As(err, &damage) && !errors.Is(err, listing.ErrForeign) {
		return nil, err // the connection broke: the SDK retries
	}
	if a.err == nil {
		if _, err := io.Copy(io.Discard, body); err != nil { // so that the connection can be used again
			return nil, err
		}
	}
	resp.ContentLength = body.n
	resp.Body = io.NopCloser(bytes.NewReader([]byte("<EnumerationResults/>")))
	return resp, nil
}

// finalError is one that another attempt cannot change: the SDK does not retry it.
type finalError struct{ error }

func (e finalError) Unwrap() error { return e.error }

// NonRetriable is what the SDK looks for.
func (finalError) NonRetriable() {}

// final marks an error as final if it is.
func final(err error) error {
	if errors.Is(err, http.ErrSchemeMismatch) {
		return finalError{err}
	}
	return err
}

// overloaded reports whether a status asks for fewer requests.
func overloaded(status int) bool {
	return status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests
}

// counted counts the bytes of a body.
type counted struct {
	io.Reader
	n int64
}

func (c *counted) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}
