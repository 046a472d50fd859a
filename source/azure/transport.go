package azure

import (
	"crypto/tls"
	"errors"
	"net/http"
	"sync"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobfeed/internal/outbound"
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

func newClient(limit int64) *http.Client {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
	t.MaxIdleConnsPerHost = 64 // of which a catch-up of small segments makes use
	// Pings detect a dead connection before its requests time out.
	t.HTTP2 = &http.HTTP2Config{SendPingTimeout: 10 * time.Second, PingTimeout: 5 * time.Second}
	return &http.Client{Transport: outbound.Guard(t, limit)}
}

// observer reports every request.
type observer func(op string, status int, took time.Duration, received int64)

// Do implements policy.Policy.
func (o observer) Do(req *policy.Request) (*http.Response, error) {
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
	o(op, status, time.Since(began), received)
	return resp, err
}
