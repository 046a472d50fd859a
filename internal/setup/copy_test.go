package setup

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"blobfeed/internal/config"
	"blobfeed/source"
)

// What an emulator or a directory has is a copy of a feed, which lacks what is missing. The service writes it later.
func TestCopies(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("x-ms-error-code", "BlobNotFound")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer s.Close()
	for url, copied := range map[string]bool{s.URL: false, s.URL + "/account": true, s.URL + "/account/": true} {
		from, err := OpenSource(&config.Config{SourceURL: url, SourceAuth: "anonymous"}, Observe{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = from.Feed.LastConsumable(t.Context())
		if errors.Is(err, source.ErrIncomplete) != copied || !copied && err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}

// A row of a scan has no event that names its account: if the settings do not, there is no scan.
func TestScanNamesTheAccount(t *testing.T) {
	for name, c := range map[string]*config.Config{
		"a domain":          {SourceURL: "https://files.example.com", SourceAuth: "anonymous"},
		"a domain, and it":  {SourceURL: "https://files.example.com", SourceAuth: "anonymous", SourceAccount: "acct"},
		"the account's own": {SourceURL: "https://acct.blob.core.windows.net", SourceAuth: "anonymous"},
	} {
		from, err := OpenSource(c, Observe{})
		if err != nil {
			t.Fatal(err)
		}
		if scans := name != "a domain"; scans != (from.Inventory != nil) || scans == errors.Is(from.NoScan, errUnnamed) {
			t.Errorf("%s: %v", name, from.NoScan)
		}
	}
}

// A connection string names an account by itself. A URL that names another one does not have its way silently.
func TestConnectionStringOfAnotherAccount(t *testing.T) {
	const text = "DefaultEndpointsProtocol=https;AccountName=photos;AccountKey=c2VjcmV0;EndpointSuffix=core.windows.net"
	for url, want := range map[string]string{
		"":                                     "",
		"https://photos.blob.core.windows.net": "",
		"https://videos.blob.core.windows.net": "BRIDGE_SOURCE_URL: it names videos.blob.core.windows.net, but " +
			"BRIDGE_SOURCE_CONNECTION_STRING photos.blob.core.windows.net, which is read: leave one of them out, or " +
			"correct it",
	} {
		_, err := OpenSource(&config.Config{SourceURL: url, SourceAuth: "connection_string",
			SourceConnectionString: text}, Observe{})
		if got := fmt.Sprint(err); (err == nil) != (want == "") || err != nil && got != want {
			t.Errorf("%q: %v", url, err)
		}
	}
}

// A request of a check may take as long as a connection, and not three times that.
func TestTimeoutOfAHurriedRequest(t *testing.T) {
	c := &config.Config{NetworkTimeout: time.Second}
	patient := Azure(c)
	c.Tuning.StorageRetries = 2
	if hurried := Azure(c); patient.Timeout <= time.Second || hurried.Timeout != time.Second {
		t.Errorf("%s, hurried %s", patient.Timeout, hurried.Timeout)
	}
}
