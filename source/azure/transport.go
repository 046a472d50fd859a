package azure

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/runtime"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobfeed/internal/outbound"
	"blobfeed/internal/plain"
)

// maxAnswer bounds the body of every answer but the bytes of a blob. The longest is a page of a listing: pageSize lines
// of about 700 bytes.
const maxAnswer = 2 << 20

// pageSize is how many lines of a listing one request asks for, maxPages how many pages a listing may have.
const (
	pageSize = 1000
	maxPages = 1000
)

var errPages = errors.New("the listing has too many pages: check the endpoint, and proxies on the way to it")

// maxInventory bounds a page of an inventory: its names can have 9 KB each. It is decoded as it arrives.
const maxInventory = 64 << 20

// defaultClient is the SDK's own, except that it follows no redirects. inventoryClient accepts longer answers.
var (
	defaultClient   = sync.OnceValue(func() *http.Client { return newClient(maxAnswer) })
	inventoryClient = sync.OnceValue(func() *http.Client { return newClient(maxInventory) })
)

// dialTimeout is when a connection is given up and reported. By default that takes 30 s.
const dialTimeout = 10 * time.Second

func newClient(limit int64) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	t.DialContext = (&net.Dialer{Timeout: dialTimeout}).DialContext
	t.MaxIdleConnsPerHost = 64 // of which a catch-up of small segments makes use
	// Pings detect a dead connection before its requests time out.
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
	return &http.Client{Transport: outbound.Guard(t, limit)}
}

// observer reports every request.
type observer struct{ config *Config }

// Do implements policy.Policy.
func (o *observer) Do(req *policy.Request) (*http.Response, error) {
	op := "read"
	if req.Raw().URL.Query().Get("comp") == "list" {
		op = "list"
	}
	began := time.Now()
	resp, err := req.Next()
	status, received := 0, int64(0)
	if resp != nil {
		status, received = resp.StatusCode, resp.ContentLength // a body that breaks off has fewer
	}
	o.config.Observe(op, status, time.Since(began), received, o.config.explain(err)) // without the signature in the URL
	return resp, err
}

// serviceVersion is the version of the service's protocol that every request asks for: the first one with startFrom,
// which divides the listing of a container.
//
// It is not the SDK's. azblob 1.8 asks for 2026-12-06, which a part of the accounts rejects (azure-sdk-for-go issue
// 27543; the SDKs for Java and Python took that version back). It is no setting: nothing depends on a later version,
// and public regions know this one. An account that does not cannot be read, and the error says what is left to do.
const serviceVersion = "2026-02-06"

// The SDK writes the raw key. http.Header.Set would add another one beside it.
const versionHeader = "x-ms-version"

// versioner asks for serviceVersion, and remembers which version the account answers with. It comes before the
// credentials: a signature covers the header.
type versioner struct{ answered *string }

// Do implements policy.Policy.
func (v versioner) Do(req *policy.Request) (*http.Response, error) {
	header := req.Raw().Header
	for key := range header {
		if strings.EqualFold(key, versionHeader) {
			delete(header, key)
		}
	}
	header[versionHeader] = []string{serviceVersion}
	resp, err := req.Next()
	if resp != nil && v.answered != nil {
		*v.answered = plain.Line(resp.Header.Get(versionHeader))
	}
	return resp, err
}

// Version returns the version of the service's protocol that the account answers with. It asks for one line of the
// feed's listing.
func (c *Config) Version(ctx context.Context) (version string, err error) {
	asking := *c
	asking.answered = &version
	cl, _, err := asking.client(Container)
	if err != nil {
		return "", err
	}
	_, err = cl.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{MaxResults: new(int32(1))}).NextPage(ctx)
	return version, c.explain(err)
}

// otherVersion says what to do about an account that does not know serviceVersion.
func (c *Config) otherVersion() string {
	return "ask whoever runs this cloud for the Blob service of version " + serviceVersion + " or later; until then, " +
		"copy the container " + Container + " to a directory with azcopy, and set " + c.named("Endpoint") +
		"=file://<directory>"
}

// rejectsVersion reports whether an answer rejects serviceVersion.
func rejectsVersion(err error) bool {
	status, is := errors.AsType[*azcore.ResponseError](err)
	if !is || status.StatusCode != http.StatusBadRequest ||
		status.ErrorCode != "InvalidHeaderValue" || status.RawResponse == nil {
		return false
	}
	body, _ := runtime.Payload(status.RawResponse) // which the SDK has read into memory
	return bytes.Contains(bytes.ToLower(body), []byte("<headername>"+versionHeader+"</headername>"))
}
