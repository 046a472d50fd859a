package azure

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

// The feed was never enabled: an answer of its own, from whatever is asked first.
func TestFeedIsNotEnabled(t *testing.T) {
	for _, c := range []struct {
		status int
		code   string
		want   error
	}{
		{404, "ContainerNotFound", source.ErrNoFeed}, {409, "ContainerBeingDeleted", source.ErrNoFeed},
		{404, "BlobNotFound", source.ErrNotFound},
		{404, "ResourceNotFound", nil}, {404, "", nil}, // a proxy's: it must not look like lost history
	} {
		store, _ := server(t, func(w http.ResponseWriter, _ *http.Request, _ int) { fail(w, c.status, c.code) })
		check := func(what string, err error) {
			t.Helper()
			for _, known := range []error{source.ErrNoFeed, source.ErrNotFound} {
				if err == nil || errors.Is(err, known) != (c.want == known) {
					t.Errorf("%d %s: %s: %v", c.status, c.code, what, err)
				}
			}
		}
		_, err := store.ReadAt(t.Context(), "meta/segments.json", make([]byte, 10), 0)
		if _, do := plain.SplitRemedy(err); errors.Is(c.want, source.ErrNoFeed) &&
			(!strings.Contains(do, "Azurite writes no feed: upload one") || !strings.Contains(err.Error(), "/acct/$blobchangefeed: ")) {
			t.Errorf("%d %s: it does not say what to do: %v", c.status, c.code, err)
		}
		check("reading", err)
		for _, delimiter := range []string{"", "/"} {
			err = nil
			for _, err = range store.List(t.Context(), "idx/", delimiter) {
			}
			check("listing", err)
		}
	}
}

// Azurite can enable no feed. Only its addresses have the account in their path.
func TestNoFeedOfAzurite(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://acct.blob.core.windows.net": "--account-name acct --enable-change-feed true",
		"http://127.0.0.1:10000/acct":        "Azurite writes no feed: upload one",
	} {
		req := httptest.NewRequest(http.MethodGet, endpoint+"/$blobchangefeed/meta/segments.json", nil)
		err := (&Config{Endpoint: endpoint}).noFeed(&azcore.ResponseError{RawResponse: &http.Response{Request: req}})
		if _, do := plain.SplitRemedy(err); !strings.Contains(do, want) {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// The state of one account is not another's. However the account is written, it is the same.
func TestIdentityOfTheAccount(t *testing.T) {
	id := func(endpoint string) string {
		t.Helper()
		s, err := New(Config{Endpoint: endpoint, Auth: "anonymous"})
		if err != nil {
			t.Fatal(err)
		}
		return s.ID()
	}
	const want = "acct.blob.core.windows.net"
	for _, same := range []string{"https://acct.blob.core.windows.net", "https://ACCT.Blob.Core.Windows.Net/",
		"https://acct.blob.core.windows.net/$blobchangefeed",
		"https://acct.blob.core.windows.net/$blobchangefeed/", "https://acct.dfs.core.windows.net"} {
		if got := id(same); got != want {
			t.Errorf("%s: %s", same, got)
		}
	}
	for _, other := range []string{"https://acct2.blob.core.windows.net", "https://acct.blob.core.chinacloudapi.cn",
		"http://127.0.0.1:10000/acct", "http://127.0.0.1:10001/acct", "http://127.0.0.1:10000/Acct"} {
		if got := id(other); got == want {
			t.Errorf("%s: %s", other, got)
		}
	}
	if id("http://127.0.0.1:10000/acct") == id("http://127.0.0.1:10001/acct") {
		t.Error("two ports are the same account")
	}
}

// The secondary endpoint is of the same account. A domain of one's own does not name it; a connection string does.
func TestAccount(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://acct.blob.core.windows.net": "acct", "https://acct-secondary.blob.core.windows.net": "acct",
		"http://127.0.0.1:10000/acct": "acct", "https://files.example.com": "",
	} {
		if s, err := New(Config{Endpoint: endpoint, Auth: "anonymous"}); err != nil || s.Account() != want {
			t.Errorf("%s: %q, %v", endpoint, s.Account(), err)
		}
	}
	s, err := New(Config{Auth: "connection_string",
		ConnectionString: "AccountName=acct;AccountKey=a2V5;BlobEndpoint=https://files.example.com"})
	if err != nil || s.Account() != "acct" {
		t.Errorf("%q, %v", s.Account(), err)
	}
}

// The Data Lake endpoint can't list: requests go to the blob endpoint of the same account.
func TestDataLakeEndpoint(t *testing.T) {
	for endpoint, want := range map[string]string{
		"https://acct.dfs.core.windows.net":                  "acct.blob.core.windows.net",
		"https://acct.dfs.core.windows.net/$blobchangefeed/": "acct.blob.core.windows.net",
		"https://acct.z12.dfs.storage.azure.net":             "acct.z12.blob.storage.azure.net",
		"https://acct.blob.core.windows.net":                 "acct.blob.core.windows.net",
		"https://dfs.blob.core.windows.net":                  "dfs.blob.core.windows.net",
		"https://acct.privatelink.dfs.core.windows.net":      "acct.privatelink.blob.core.windows.net",
	} {
		var host, path string
		s, err := New(Config{Endpoint: endpoint, Auth: "anonymous",
			Transport: direct{http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				host, path = r.URL.Host, r.URL.Path
				serve(w, r)
			})}})
		if err != nil {
			t.Errorf("%s: %v", endpoint, err)
			continue
		}
		if _, err := s.ReadAt(t.Context(), "meta/segments.json", make([]byte, 4), 0); err != nil || host != want ||
			path != "/$blobchangefeed/meta/segments.json" {
			t.Errorf("%s: %s%s, %v", endpoint, host, path, err)
		}
	}
}

// A container beside the feed's is not a feed without events, also where the account is in the path.
func TestOnlyTheAccountIsNamed(t *testing.T) {
	const own = "it names \"photos\" in the account: want the account alone, "
	for endpoint, want := range map[string]string{
		"https://acct.blob.core.windows.net/photos":           own + "https://acct.blob.core.windows.net (",
		"https://acct.dfs.core.windows.net/photos/":           own + "https://acct.blob.core.windows.net (",
		"http://127.0.0.1:10000/acct/photos":                  own + "http://127.0.0.1:10000/acct (",
		"http://127.0.0.1:10000/acct/photos/$blobchangefeed/": own + "http://127.0.0.1:10000/acct (",
	} {
		_, err := New(Config{Endpoint: endpoint, Auth: "anonymous"})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", endpoint, err)
		}
		_, err = New(Config{Auth: "connection_string",
			ConnectionString: "AccountName=acct;AccountKey=a2V5;BlobEndpoint=" + endpoint})
		var setting *SettingError
		if !errors.As(err, &setting) || setting.Field != "ConnectionString" || !strings.Contains(
			err.Error(), own) {
			t.Errorf("connection string with %s: %v", endpoint, err)
		}
	}
}
