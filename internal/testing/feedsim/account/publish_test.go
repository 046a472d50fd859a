package account

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"math/rand/v2"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
	"blobfeed/source/azure"
	"blobfeed/source/inventory"
)

// A blob that is lost is gone, and the feed has no event of that.
func TestLose(t *testing.T) {
	a := New(nil)
	a.Put("c", inventory.Blob{Name: "b"})
	a.Record()
	if !a.Lose("c", "b") || a.Exists("c", "b") || a.Pending() != 0 || a.Lose("c", "b") || a.Lose("d", "b") {
		t.Errorf("it exists: %t; %d changes wait", a.Exists("c", "b"), a.Pending())
	}
}

// The table that the feed's events make is the account, however late they are published, and it is read back through
// the server as from a real account: each with the etag, length and tier that a listing has.
func TestTheFeedMakesTheAccount(t *testing.T) {
	now := time.Date(2026, 1, 1, 0, 10, 0, 0, time.UTC)
	a, files := New(func() time.Time { return now }), NewFiles()
	a.Record()
	feed, err := feedsim.New(files, feedsim.Spec{Shards: 3, Versions: []int{5, 6}, TornAppends: true})
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(1, 2))
	late := func(Change) bool { return rng.IntN(3) == 0 }
	publish := func(later func(Change) bool) {
		if _, err := a.Publish(t.Context(), feed, later, nil); err != nil {
			t.Fatal(err)
		}
	}
	for hour := range 3 {
		if hour == 0 {
			err = feed.Open(t.Context())
		} else {
			err = feed.Next(t.Context())
		}
		if err != nil {
			t.Fatal(err)
		}
		for range 500 {
			name := fmt.Sprintf("é/%d &", rng.IntN(100))
			if container := fmt.Sprint("c", rng.IntN(4)); rng.IntN(3) == 0 {
				a.Delete(container, name)
			} else {
				a.Put(container, inventory.Blob{Name: name, Length: rng.Int64N(100), ContentType: "a/b",
					Tier: []string{"", "Cool", "Archive"}[rng.IntN(3)]})
			}
			if rng.IntN(50) == 0 {
				publish(late)
			}
		}
		now = now.Add(time.Hour)
	}
	publish(late)
	if a.Pending() == 0 {
		t.Error("nothing is late")
	}
	publish(nil)
	if err := feed.Finalize(t.Context()); err != nil {
		t.Fatal(err)
	}
	srv := httptest.NewServer(&Server{Account: a, Feed: files})
	defer srv.Close()
	store, err := azure.New(azure.Config{Endpoint: srv.URL + "/acct", Auth: "anonymous",
		Retry: policy.RetryOptions{MaxRetries: -1}})
	if err != nil {
		t.Fatal(err)
	}
	got, err := table(t.Context(), store)
	if err != nil {
		t.Fatal(err)
	}
	want, tags := a.Blobs(), map[string]bool{}
	for key, b := range want { // events have no Last-Modified
		tags[b.ETag] = true
		b.Modified = time.Time{}
		want[key] = b
	}
	if len(tags) != len(want) {
		t.Errorf("%d blobs have %d entity tags", len(want), len(tags))
	}
	if len(want) < 100 || !maps.Equal(got, want) {
		t.Errorf("%d blobs in the feed, %d in the account", len(got), len(want))
		for key := range want {
			if got[key] != want[key] {
				t.Fatalf("%s: %+v, want %+v", key, got[key], want[key])
			}
		}
	}
}

// table applies the events of a feed.
func table(ctx context.Context, store source.Store) (map[string]inventory.Blob, error) {
	all := map[string]inventory.Blob{}
	f := source.New(store, source.Options{})
	for seg, err := range f.Segments(ctx, source.Segment{}) {
		if err != nil {
			return nil, err
		}
		m, err := f.Manifest(ctx, seg)
		if err != nil {
			return nil, err
		}
		for _, n := range m.Shards {
			r := f.Shard(m, n, source.ShardPosition{})
			if err := r.Poll(ctx, m.Finalized); err != nil {
				return nil, err
			}
			for {
				var batch source.Batch
				if err := r.Next(ctx, &batch); errors.Is(err, io.EOF) {
					break
				} else if err != nil {
					return nil, err
				}
				for i := range batch.Events {
					e := &batch.Events[i]
					// The tag is the time of the change, also of one that is published late.
					at, err := time.Parse(time.RFC3339, e.EventTime)
					if err != nil || string(appendETag(nil, at.UnixNano()/100)) != e.ETag {
						return nil, fmt.Errorf("event at %s with tag %s: %w", e.EventTime, e.ETag, err)
					}
					path := strings.TrimPrefix(e.Subject, "/blobServices/default/containers/")
					key := strings.Replace(path, "/blobs/", "/", 1)
					_, name, _ := strings.Cut(key, "/")
					if e.EventType == "BlobDeleted" {
						delete(all, key)
						continue
					}
					all[key] = inventory.Blob{Name: name, ETag: e.ETag, ContentType: e.ContentType,
						BlobType: e.BlobType, Tier: e.BlobTier, Length: e.ContentLength}
				}
			}
		}
	}
	return all, nil
}
