package faults

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
)

// However a listing is cut into pages, it is the same, and the service accepts the signatures.
func TestPages(t *testing.T) {
	want := []string{"a", "b", "c", "d", "e"}
	for _, k := range []Kind{SmallPages, EmptyPage} {
		s, p, base := proxied(t, Options{Spare: only(k)})
		s.add(want...)
		list(t, client(t, base)) // a listing that was never seen is not parted
		p.SetRate(1)
		got, pages := list(t, client(t, base))
		if !slices.Equal(got, want) || pages < 2 || p.Stats().Faults[k] != 1 || p.Stats().Injected() != 1 {
			t.Errorf("%s: %v in %d pages; %v", k, got, pages, p.Stats())
		}
	}
}

// A listing that fits into a small page is not hit.
func TestOnePage(t *testing.T) {
	s, p, base := proxied(t, Options{Spare: only(SmallPages)})
	s.add("a")
	list(t, client(t, base))
	p.SetRate(1)
	if got, pages := list(t, client(t, base)); len(got) != 1 || pages != 1 || p.Stats().Injected() != 0 {
		t.Errorf("%v in %d pages; %v", got, pages, p.Stats())
	}
}

// A stale listing is one of the past, never what is there now. Where nothing has changed there is none.
func TestStale(t *testing.T) {
	s, p, base := proxied(t, Options{Spare: only(StaleListing)})
	cl := client(t, base)
	s.add("a")
	list(t, cl)
	p.SetRate(1)
	if got, _ := list(t, cl); !slices.Equal(got, []string{"a"}) || p.Stats().Injected() != 0 {
		t.Errorf("%v; %v", got, p.Stats())
	}
	p.SetRate(0)
	s.add("b")
	list(t, cl)
	p.SetRate(1)
	if got, _ := list(t, cl); !slices.Equal(got, []string{"a"}) || p.Stats().Faults[StaleListing] != 1 {
		t.Errorf("%v; %v", got, p.Stats())
	}
	s.add("c")
	seen := map[int]bool{}
	for i := range 20 { // a listing that nobody has seen yet is as good as one of the past, next time
		got, _ := list(t, cl)
		if seen[len(got)] = true; len(got) == 3 || p.Stats().Faults[StaleListing] != i+2 {
			t.Errorf("%v; %v", got, p.Stats())
		}
	}
	if !seen[1] || !seen[2] {
		t.Errorf("of two old listings one never came: %v", seen)
	}
	p.SetRate(0)
	if got, _ := list(t, cl); !slices.Equal(got, []string{"a", "b", "c"}) {
		t.Errorf("%v", got)
	}
}

type transport func(*http.Request) (*http.Response, error)

func (f transport) Do(r *http.Request) (*http.Response, error) { return f(r) }

// A signature is the one that the SDK makes for the same request.
func TestSign(t *testing.T) {
	cred, err := container.NewSharedKeyCredential(account, key)
	if err != nil {
		t.Fatal(err)
	}
	signed := 0
	check := transport(func(r *http.Request) (*http.Response, error) {
		want := r.Header.Get("Authorization")
		r.Header.Set("Authorization", "other")
		if err := sign(r, account, key); err != nil || r.Header.Get("Authorization") != want ||
			!strings.HasPrefix(want, "SharedKey ") {
			t.Errorf("%s: %q, want %q; %v", r.URL, r.Header.Get("Authorization"), want, err)
		}
		signed++
		return &http.Response{StatusCode: http.StatusForbidden, Body: http.NoBody, Header: http.Header{}, Request: r},
			nil
	})
	for _, where := range []string{"http://127.0.0.1:1/acct/$blobchangefeed",
		"https://acct.blob.core.windows.net/$blobchangefeed"} {
		options := &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: check}}
		cl, err := container.NewClientWithSharedKeyCredential(where, cred, options)
		if err != nil {
			t.Fatal(err)
		}
		prefix, marker, size := "log/00/a b+c/", "2!76!MDAwMDEx/==", int32(1)
		flat := cl.NewListBlobsFlatPager(&container.ListBlobsFlatOptions{Prefix: &prefix, Marker: &marker,
			MaxResults: &size})
		if _, err := flat.NextPage(t.Context()); err == nil {
			t.Error("no error")
		}
		if _, err := cl.NewListBlobsHierarchyPager("/", nil).NextPage(t.Context()); err == nil {
			t.Error("no error")
		}
	}
	if signed != 4 {
		t.Errorf("%d requests", signed)
	}
	if err := sign(&http.Request{}, account, "no base64!"); err == nil {
		t.Error("a key that is none")
	}
}
