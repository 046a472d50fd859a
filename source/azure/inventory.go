package azure

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/bloberror"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"blobfeed/internal/plain"
	"blobfeed/source"
	"blobfeed/source/azure/listing"
	"blobfeed/source/inventory"
)

// Inventory lists the whole account. It is safe for concurrent use.
type Inventory struct {
	store  *Store
	client atomic.Pointer[service.Client]
}

var _ inventory.Store = (*Inventory)(nil)

// errNoDate is for an answer that does not say when it was true: a scan ends when the feed has passed that time.
var errNoDate = errors.New("the answer has no date: check proxies on the way to the storage service")

// Inventory returns the account that the feed is of. It makes no request.
func (s *Store) Inventory() (*Inventory, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.inventory == nil {
		v := &Inventory{store: s}
		if err := v.connect(&s.config); err != nil {
			return nil, err
		}
		s.inventory = v
	}
	return s.inventory, nil
}

func (v *Inventory) connect(c *Config) error {
	t := c.Transport
	if t == nil {
		t = inventoryClient()
	}
	cl, _, err := c.service(t)
	if err != nil {
		return err
	}
	u, err := url.Parse(cl.URL())
	if err != nil {
		return errors.New("the account's URL can't be parsed") // it may hold the signature
	}
	host, _, _ := strings.Cut(u.Hostname(), ".")
	if strings.HasSuffix(host, "-secondary") || strings.HasSuffix(strings.TrimRight(u.Path, "/"), "-secondary") {
		// By minutes: the feed would have told of changes before it.
		return plain.WithRemedy(errors.New("the secondary endpoint can't be listed, since it lags behind the feed"),
			"set "+c.named("Endpoint")+" to the primary endpoint")
	}
	v.client.Store(cl)
	return nil
}

// URL returns where the account's containers are, with a slash at its end, as in the URLs of events.
func (v *Inventory) URL() string {
	u, err := url.Parse(v.client.Load().URL())
	if err != nil {
		return "" // connect has parsed it
	}
	return u.Scheme + "://" + u.Host + strings.TrimSuffix(u.Path, "/") + "/"
}

// Containers implements inventory.Store.
func (v *Inventory) Containers(ctx context.Context, marker string) (*inventory.Containers, error) {
	var a answer
	pager := v.client.Load().NewListContainersPager(&service.ListContainersOptions{Marker: some(marker)})
	resp, err := pager.NextPage(a.with(ctx))
	if err != nil {
		return nil, v.failed(err, marker)
	}
	page := &inventory.Containers{Served: a.served, Busy: a.busy}
	if resp.NextMarker != nil {
		page.Marker = *resp.NextMarker
	}
	for _, c := range resp.ContainerItems {
		if c.Name == nil {
			return nil, listing.ErrForeign
		}
		// Azurite also lists those that the service writes itself.
		if name := *c.Name; !strings.HasPrefix(name, "$") || name == "$root" || name == "$web" {
			page.Names = append(page.Names, name)
		}
	}
	return page, nil
}

// List implements inventory.Store.
func (v *Inventory) List(ctx context.Context, q inventory.Query) (*inventory.Page, error) {
	a := answer{decode: true}
	pager := v.client.Load().NewContainerClient(q.Container).NewListBlobsFlatPager(&container.ListBlobsFlatOptions{
		Prefix: some(q.Prefix), StartFrom: some(q.From), Marker: some(q.Marker), MaxResults: new(int32(q.Max))})
	if _, err := pager.NextPage(a.with(ctx)); err != nil {
		return nil, v.failed(err, q.Marker)
	}
	if a.err != nil {
		return nil, a.err
	}
	if a.served.IsZero() {
		return nil, errNoDate
	}
	// An Azurite before 3.37 ignores where to start.
	blobs := a.page.Blobs
	first := slices.IndexFunc(blobs, func(b inventory.Blob) bool { return !inventory.Before(b.Name, q.From) })
	if first < 0 {
		first = len(blobs)
	}
	return &inventory.Page{Blobs: blobs[first:], Marker: a.page.Marker, Served: a.served, Busy: a.busy}, nil
}

// Exists implements inventory.Store.
func (v *Inventory) Exists(ctx context.Context, container, name string) (bool, time.Time, error) {
	var a answer
	_, err := v.client.Load().NewContainerClient(container).NewBlobClient(name).GetProperties(a.with(ctx), nil)
	gone := bloberror.HasCode(err, bloberror.BlobNotFound, bloberror.ContainerNotFound, // a proxy's 404 has no code
		bloberror.ContainerBeingDeleted)
	switch {
	case err != nil && !gone:
		return false, time.Time{}, v.failed(err, "")
	case a.served.IsZero():
		return false, time.Time{}, errNoDate
	}
	return !gone, a.served, nil
}

// some returns nil for "", which the SDK sends as an empty parameter.
func some(text string) *string {
	if text == "" {
		return nil
	}
	return &text
}

// failed maps errors to those of inventory.Store. Marker is that of the request.
func (v *Inventory) failed(err error, marker string) error {
	status, is := errors.AsType[*azcore.ResponseError](err)
	switch {
	case bloberror.HasCode(err, bloberror.ContainerNotFound, bloberror.ContainerBeingDeleted):
		return inventory.ErrNoContainer
	case !is:
		return v.store.explain(err)
	case status.StatusCode == http.StatusBadRequest && marker != "":
		return inventory.ErrMarker
	case overloaded(status.StatusCode):
		return fmt.Errorf("%w: it answers %s", inventory.ErrBusy, statusOf(status))
	case status.StatusCode == http.StatusForbidden || status.StatusCode == http.StatusUnauthorized:
		err := plain.WithRemedy(answered(status), v.store.widen())
		if rerr := v.store.renew(); rerr != nil {
			return fmt.Errorf("%w; renewing the credentials: %w", err, rerr)
		}
		return err
	}
	return v.store.explain(err)
}

// widen says what the credentials need for an inventory.
func (s *Store) widen() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.config.Auth == "sas" {
		return "create the shared access signature for the account, with the permissions read and list (sp=rl) " +
			"and the resource types service, container and object (srt=sco)"
	}
	return "assign the role Storage Blob Data Reader on the storage account"
}

// answer is what a listing, or a request of an inventory, got.
type answer struct {
	served time.Time
	busy   bool // an attempt was rejected because the service was overloaded

	decode bool // the answer is a page of blobs
	all    bool // also of those that are not current
	page   *listing.Page
	err    error // of the page: repeating the request at once would not change it
}

type answerKey struct{}

// receiver fills the answer in a request's context. It decodes a page of blobs as it arrives, and gives the SDK an
// empty one: the SDK's decoder takes ten times as long. Signing, retries and timeouts stay those of the SDK, so the
// receiver works within an attempt.
type receiver struct{ met atomic.Bool } // the service has answered

// with returns a context whose requests fill the answer.
func (a *answer) with(ctx context.Context) context.Context {
	return context.WithValue(ctx, answerKey{}, a)
}

// Do implements policy.Policy.
func (r *receiver) Do(req *policy.Request) (*http.Response, error) {
	a, ok := req.Raw().Context().Value(answerKey{}).(*answer)
	if ok && a.decode {
		runtime.SkipBodyDownload(req)
	}
	resp, err := req.Next()
	if err != nil {
		return resp, r.final(err)
	}
	r.met.Store(true)
	if overloaded(resp.StatusCode) {
		source.Busy(req.Raw().Context())
	}
	if !ok {
		return resp, nil
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
	a.page, a.err = listing.Decode(body, a.all)
	if err := a.err; err != nil && !errors.As(err, new(*listing.DamageError)) && !errors.Is(err, listing.ErrForeign) {
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

// final marks an error as final if it is. A service that has never been reached may be misspelled: then the caller
// soon knows, and may retry.
func (r *receiver) final(err error) error {
	dial, is := errors.AsType[*net.OpError](err)
	if noTLS(err) || is && dial.Op == "dial" && !r.met.Load() {
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
