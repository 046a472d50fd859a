//go:build integration

package integration

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"

	"blobfeed/integration/stack"
	"blobfeed/source/azure"
	"blobfeed/source/inventory"
)

// A listing of Azurite is what was uploaded, in pages of any size, resumed anywhere.
func TestInventory(t *testing.T) {
	t.Parallel()
	account := takeAccount(t)
	s, err := service.NewClientFromConnectionString(account.connection, nil)
	if err != nil {
		t.Fatal(err)
	}
	where := strings.TrimSuffix(s.URL(), "/")
	store, err := azure.New(azure.Config{Endpoint: where, Auth: "shared_key", Account: account.name,
		Key: stack.AzuriteKey})
	if err != nil {
		t.Fatal(err)
	}
	v, err := store.Inventory()
	if err != nil {
		t.Fatal(err)
	}
	container := fmt.Sprintf("inventory-%d", time.Now().UnixNano())
	c := s.NewContainerClient(container)
	if _, err := c.Create(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	want := map[string]inventory.Blob{}
	for i, name := range []string{"a b & é-.jpg", "100%25/x#y+z", "x/blobs/y", `quo"te`, "😀/emoji", "trailing/x",
		"&lt;", " spaces", "]]>", "\uffee", "a?b=c", "日本", "a", "aa", "a/b", "~"} {
		up, err := c.NewBlockBlobClient(name).UploadBuffer(t.Context(), bytes.Repeat([]byte("x"), i), nil)
		if err != nil {
			t.Fatalf("%q: %v", name, err)
		}
		want[name] = inventory.Blob{Name: name, ETag: strings.Trim(string(*up.ETag), `"`), BlobType: "BlockBlob",
			ContentType: "application/octet-stream", Length: int64(i), Modified: up.LastModified.UTC()}
	}
	for _, size := range []int{1, 3, 5000} {
		got := map[string]inventory.Blob{}
		var p inventory.Progress
		for !p.Done() {
			stop, killed := context.WithCancel(t.Context())
			var mu sync.Mutex
			steps := 0
			o := inventory.Options{Container: container, PageSize: size, Requests: 3}
			err := inventory.Walk(stop, v, p.Clone(), o,
				func(_ context.Context, s *inventory.Step) error {
					mu.Lock()
					defer mu.Unlock()
					if steps++; steps > 4 {
						killed()
						return context.Canceled
					}
					if s.Listed != nil {
						for _, b := range s.Listed.Blobs {
							if _, twice := got[b.Name]; twice {
								t.Errorf("%q twice", b.Name)
							}
							got[b.Name] = b
						}
					}
					return p.Apply(s)
				})
			if err != nil && stop.Err() == nil {
				t.Fatal(err)
			}
			killed()
		}
		if !maps.Equal(got, want) {
			t.Errorf("pages of %d: %d of %d", size, len(got), len(want))
			for name := range want {
				if got[name] != want[name] {
					t.Errorf("%q: %+v, want %+v", name, got[name], want[name])
				}
			}
		}
		if p.Served.IsZero() {
			t.Error("the answers have no date")
		}
	}
	for name, want := range map[string]bool{"a?b=c": true, "100%25/x#y+z": true, "no": false} {
		if there, at, err := v.Exists(t.Context(), container, name); there != want || err != nil || at.IsZero() {
			t.Errorf("%q: %v, %v, %v", name, there, at, err)
		}
	}
	all, err := v.Containers(t.Context(), "")
	if err != nil || !slices.Contains(all.Names, container) || slices.Contains(all.Names, azure.Container) {
		t.Errorf("%v, %v", all, err)
	}
	_, err = v.List(t.Context(), inventory.Query{Container: "missing-one", Max: 1})
	if !errors.Is(err, inventory.ErrNoContainer) {
		t.Error(err)
	}
}
