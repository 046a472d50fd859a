package faults

import (
	"encoding/base64"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

const account = "acct"

var key = base64.StdEncoding.EncodeToString([]byte("hunter2"))

// service is a blob service with one container: it knows listings, and says of all blobs the same.
type service struct {
	mu       sync.Mutex
	names    []string
	requests []*http.Request
}

const content = "0123456789abcdef"

func (s *service) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r)
	q := r.URL.Query()
	if q.Get("comp") != "list" {
		w.Header().Set("ETag", `"0x1"`)
		_, _ = w.Write([]byte(content))
		return
	}
	if got := r.Header.Get("Authorization"); strings.HasPrefix(got, "SharedKey") {
		if err := sign(r, account, key); err != nil || r.Header.Get("Authorization") != got {
			http.Error(w, "the signature is wrong", http.StatusForbidden)
			return
		}
	}
	from, size := 0, len(s.names)
	if m := q.Get("marker"); m != "" {
		_, _ = fmt.Sscanf(m, "from-%d", &from) // what is no number begins again, and the test sees it
	}
	if m := q.Get("maxresults"); m != "" {
		_, _ = fmt.Sscan(m, &size)
	}
	to := min(from+size, len(s.names))
	w.Header().Set("Content-Type", "application/xml")
	fmt.Fprint(w, xml.Header+`<EnumerationResults><Blobs>`)
	for _, name := range s.names[from:to] {
		fmt.Fprintf(w, `<Blob><Name>%s</Name><Properties><Content-Length>1</Content-Length></Properties></Blob>`, name)
	}
	if to < len(s.names) {
		fmt.Fprintf(w, `</Blobs><NextMarker>from-%d</NextMarker></EnumerationResults>`, to)
		return
	}
	fmt.Fprint(w, `</Blobs><NextMarker></NextMarker></EnumerationResults>`)
}

func (s *service) add(names ...string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.names = append(s.names, names...)
}

// only spares requests everything but k.
func only(k Kind) func(Kind, *http.Request) bool {
	return func(other Kind, _ *http.Request) bool { return other != k }
}

// proxied returns a service and a proxy in front of it.
func proxied(t *testing.T, o Options) (*service, *Proxy, string) {
	t.Helper()
	s := &service{}
	up := httptest.NewServer(s)
	t.Cleanup(up.Close)
	var err error
	if o.Target, err = url.Parse(up.URL); err != nil {
		t.Fatal(err)
	}
	o.Account, o.Key = account, key
	p := New(o)
	down := httptest.NewServer(p)
	t.Cleanup(down.Close)
	return s, p, down.URL
}

// client returns the SDK's, which does not try again.
func client(t *testing.T, base string) *container.Client {
	t.Helper()
	cred, err := container.NewSharedKeyCredential(account, key)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := container.NewClientWithSharedKeyCredential(base+"/"+account+"/$blobchangefeed", cred,
		&container.ClientOptions{ClientOptions: azcore.ClientOptions{Retry: policy.RetryOptions{MaxRetries: -1}}})
	if err != nil {
		t.Fatal(err)
	}
	return cl
}

// list returns the names of a flat listing, and how many pages it had.
func list(t *testing.T, cl *container.Client) (names []string, pages int) {
	t.Helper()
	for pager := cl.NewListBlobsFlatPager(nil); pager.More(); pages++ {
		page, err := pager.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, b := range page.Segment.BlobItems {
			names = append(names, *b.Name)
		}
	}
	return names, pages
}
