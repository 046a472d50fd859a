package azure

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
)

// simulated is an account behind HTTP.
func simulated(t *testing.T, c Config) (*account.Server, *Inventory) {
	t.Helper()
	s := &account.Server{Account: account.New(nil)}
	srv := httptest.NewServer(s)
	t.Cleanup(srv.Close)
	c.Endpoint, c.Auth = srv.URL+"/acct", "anonymous"
	if c.SAS != "" {
		c.Auth = "sas"
	}
	if c.Retry.MaxRetries == 0 {
		c.Retry = policy.RetryOptions{MaxRetries: -1}
	}
	store, err := New(c)
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	return s, v
}

// fill writes blobs with every kind of name.
func fill(a *account.Account) {
	for i, name := range []string{"a b & é-.jpg", "100%25/x#y+z", "/leading", `quo"te\back`, "😀/emoji", "trailing/",
		"&lt;", "a\ufffeb", "a\uffff+%41", "tab\tand\r\nlines", " spaces ", "]]>", strings.Repeat("&", 1024),
		"\uffee", "a?b=c"} {
		for _, container := range []string{"$root", "$web", "photos"} {
			a.Put(container, inventory.Blob{Name: name, Length: int64(i) << 33, Tier: []string{"", "Cool"}[i%2],
				ContentType: fmt.Sprint("text/", i%3), BlobType: []string{"BlockBlob", "AppendBlob"}[i%2]})
		}
	}
	a.Create("empty")
	a.Put("$logs", inventory.Blob{Name: "no"})
	a.Put("$blobchangefeed", inventory.Blob{Name: "no"})
}

// walked returns what Walk lists, beginning at p.
func walked(ctx context.Context, v *Inventory, p inventory.Progress, size int) (map[string]inventory.Blob, error) {
	var mu sync.Mutex
	all := map[string]inventory.Blob{}
	o := inventory.Options{PageSize: size, Requests: 4}
	return all, inventory.Walk(ctx, v, p, o, func(_ context.Context, s *inventory.Step) error {
		mu.Lock()
		defer mu.Unlock()
		if s.Listed != nil {
			for _, b := range s.Listed.Blobs {
				if _, twice := all[s.Container+"/"+b.Name]; twice {
					return fmt.Errorf("%q twice", b.Name)
				}
				all[s.Container+"/"+b.Name] = b
			}
		}
		return nil
	})
}

// Whatever the names and the size of pages, a listing is what the account holds, without the service's own containers.
func TestInventoryIsTheAccount(t *testing.T) {
	s, v := simulated(t, Config{})
	fill(s.Account)
	want := s.Account.Blobs()
	delete(want, "$logs/no")
	delete(want, "$blobchangefeed/no")
	for _, size := range []int{1, 4, 5000} {
		got, err := walked(t.Context(), v, inventory.Progress{}, size)
		if err != nil || len(got) != len(want) {
			t.Errorf("pages of %d: %d of %d blobs, %v", size, len(got), len(want), err)
		}
		for key, b := range want {
			if got[key] != b {
				t.Errorf("%q: %+v, want %+v", key, got[key], b)
			}
		}
	}
}

// A service that ignores where to start is still read from there.
func TestStartIsIgnored(t *testing.T) {
	for _, ignored := range []bool{false, true} {
		s, v := simulated(t, Config{})
		s.IgnoreFrom = ignored
		fill(s.Account)
		p := inventory.Progress{Next: "~", Exhausted: true, Open: []inventory.Range{
			{ID: 1, Container: "photos", After: "100%25/x#y+z"}, {ID: 2, Container: "$web", From: "a?", End: "b"}}}
		got, err := walked(t.Context(), v, p, 3)
		want := map[string]bool{"$web/a?b=c": true, "$web/a\ufffeb": true, "$web/a\uffff+%41": true}
		for key := range s.Account.Blobs() {
			if name, ok := strings.CutPrefix(key, "photos/"); ok && name > "100%25/x#y+z" {
				want[key] = true
			}
		}
		if err != nil || len(got) != len(want) {
			t.Errorf("ignored %v: %d of %d blobs, %v", ignored, len(got), len(want), err)
		}
		for key := range want {
			if _, ok := got[key]; !ok {
				t.Errorf("ignored %v: %q is missing", ignored, key)
			}
		}
	}
}

// Errors are those of inventory.Store, and say what to do.
func TestInventoryErrors(t *testing.T) {
	for _, c := range []struct {
		status    int
		code, sas string
		is        error
		says      string
	}{
		{404, "ContainerNotFound", "", inventory.ErrNoContainer, ""},
		{409, "ContainerBeingDeleted", "", inventory.ErrNoContainer, ""},
		{404, "", "", nil, "404"}, // a proxy's
		{400, "InvalidQueryParameterValue", "", inventory.ErrMarker, ""},
		{503, "ServerBusy", "", inventory.ErrBusy, "503 ServerBusy"},
		{429, "", "", inventory.ErrBusy, "429"},
		{403, "AuthorizationPermissionMismatch", "", nil, "Storage Blob Data Reader on the storage account"},
		{403, "AuthorizationPermissionMismatch", "sig=x", nil, "sp=rl"},
		{403, "AuthorizationResourceTypeMismatch", "sig=x", nil, "srt=sco"},
	} {
		s, v := simulated(t, Config{SAS: c.sas})
		s.Fault = func(*http.Request) (int, string) { return c.status, c.code }
		_, err := v.List(t.Context(), inventory.Query{Container: "c", Marker: "m", Max: 1})
		for _, known := range []error{inventory.ErrNoContainer, inventory.ErrMarker, inventory.ErrBusy} {
			if err == nil || errors.Is(err, known) != (c.is == known) || !strings.Contains(err.Error(), c.says) ||
				strings.Contains(err.Error(), "sig=") {
				t.Errorf("%d %s: %v", c.status, c.code, err)
			}
		}
		if _, err := v.Containers(t.Context(), ""); err == nil {
			t.Errorf("%d %s: containers are listed", c.status, c.code)
		}
		there, _, err := v.Exists(t.Context(), "c", "b")
		if gone := c.is == inventory.ErrNoContainer; there || gone != (err == nil) {
			t.Errorf("%d %s: %v, %v", c.status, c.code, there, err)
		}
	}
}

// A proxy's page, and damage, are errors at once.
func TestInventoryOfOthers(t *testing.T) {
	for body, want := range map[string]string{"<html>log in</html>": "not a listing",
		"<EnumerationResults><Blobs/></EnumerationResults>":       "no date",
		"<EnumerationResults><Blobs><Blob><Name>a</Blob></Blobs>": "unexpected </Blob>"} {
		requests := 0
		store, err := New(Config{Endpoint: "http://127.0.0.1/acct", Auth: "anonymous",
			Transport: direct{http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				requests++
				_, _ = w.Write([]byte(body))
			})}})
		if err != nil {
			t.Fatal(err)
		}
		v, err := store.Inventory()
		if err != nil {
			t.Fatal(err)
		}
		if _, err := v.List(t.Context(), inventory.Query{Container: "c", Max: 1}); err == nil ||
			!strings.Contains(err.Error(), want) || requests != 1 {
			t.Errorf("%s: %v after %d requests", body, err, requests)
		}
		if _, _, err := v.Exists(t.Context(), "c", "b"); err == nil || !strings.Contains(err.Error(), "no date") {
			t.Error(err)
		}
	}
}

// chunked sends no length, as the service.
type chunked struct{ http.ResponseWriter }

func (c chunked) Write(p []byte) (int, error) {
	c.Header().Del("Content-Length")
	return c.ResponseWriter.Write(p)
}

// A body that breaks off, and an overloaded service, are retried by the SDK. The page says that the service was busy.
func TestPagesAreRetried(t *testing.T) {
	s := &account.Server{Account: account.New(nil)}
	const blobs = 4000 // more than other answers may have
	for i := range blobs {
		s.Account.Put("c", inventory.Blob{Name: fmt.Sprint(i)})
	}
	requests := 0
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch requests++; requests {
		case 1:
			w.WriteHeader(http.StatusServiceUnavailable)
		case 2:
			w.Header().Set("Content-Length", "1000000")
			_, _ = w.Write([]byte("<EnumerationResults><Blobs><Blob><Name>a</Name></Blob>"))
		default:
			s.ServeHTTP(chunked{w}, r)
		}
	}))
	t.Cleanup(srv.Close)
	received := int64(0)
	store, err := New(Config{Endpoint: srv.URL + "/acct", Auth: "anonymous",
		Observe: func(_ string, _ int, _ time.Duration, n int64, _ error) { received = n },
		Retry:   policy.RetryOptions{MaxRetries: 3, RetryDelay: time.Millisecond, MaxRetryDelay: time.Millisecond}})
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	page, err := v.List(t.Context(), inventory.Query{Container: "c", Max: 5000})
	if err != nil || len(page.Blobs) != blobs || !page.Busy || requests != 3 || page.Served.IsZero() ||
		received < maxAnswer {
		t.Errorf("%d requests, %d bytes, %+v, %v", requests, received, page, err)
	}
}

// The secondary endpoint lags behind the feed.
func TestSecondaryIsNotListed(t *testing.T) {
	for endpoint, want := range map[string]bool{"https://acct.blob.core.windows.net": true,
		"https://acct-secondary.blob.core.windows.net": false, "http://127.0.0.1:10000/acct-secondary": false} {
		store, err := New(Config{Endpoint: endpoint, Auth: "anonymous"})
		if err != nil {
			t.Fatal(err)
		}
		_, err = store.Inventory()
		if (err == nil) != want || err != nil && !strings.Contains(err.Error(), "primary") {
			t.Errorf("%s: %v", endpoint, err)
		}
	}
}

// Replaced credentials reach the inventory.
func TestInventoryRenewsCredentials(t *testing.T) {
	var c Config
	c.SAS = "sig=old"
	c.Renew = func() (Config, error) { r := c; r.SAS = "sig=new"; return r, nil }
	s, v := simulated(t, c)
	c = v.store.config
	s.Account.Put("c", inventory.Blob{Name: "a"})
	s.Fault = func(r *http.Request) (int, string) {
		if r.URL.Query().Get("sig") == "new" {
			return 0, ""
		}
		return http.StatusForbidden, "AuthenticationFailed"
	}
	q := inventory.Query{Container: "c", Max: 1}
	if _, err := v.List(t.Context(), q); err == nil {
		t.Error("the old signature is accepted")
	}
	if page, err := v.List(t.Context(), q); err != nil || len(page.Blobs) != 1 {
		t.Errorf("%+v, %v", page, err)
	}
	if there, _, err := v.Exists(t.Context(), "c", "a"); !there || err != nil {
		t.Errorf("%v, %v", there, err)
	}
}
