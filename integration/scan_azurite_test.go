//go:build integration

package integration

import (
	"fmt"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/azcore/to"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/blockblob"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/service"
	"golang.org/x/sync/errgroup"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source/azure"
)

// trickyNames are odd in ways that a real service may normalize, reject or list otherwise.
func trickyNames() []string {
	names := slices.DeleteFunc(slices.Clone(oddNames), func(name string) bool {
		return name == "\u0001" // Azurite stores it, and then lists nothing of its container
	})
	for c := rune(0x20); c < 0x180; c++ {
		names = append(names, fmt.Sprintf("each/a%cb", c))
	}
	return append(names,
		" spaces ", "&lt;", "]]>", "%25%2F", "%zz", "a\u0301", "\u00e1", "A", "a", "aa", "a/b", "a/B/", "~",
		"x/blobs/y", "blobs/containers/z", "$root", "..a", "a..", "a.", "dots/../in", "./b", "\ufeffbom",
		"zero\u200bwidth", "\u2028line", "עברית", "\ue000", "\uffee", "\U00010000", "😀/emoji", "\U0010ffff",
		strings.Repeat("long/", 200)+"name", strings.Repeat("日", 300), "?comp=list", "#fragment", "a#b?c&d=e;f",
		"\"", "'", "`", "{}[]|^",
	)
}

// azuriteBlobs is how many blobs have plain names. The rate of docs/project/performance.md needs more than the comparison.
func azuriteBlobs(t *testing.T) int {
	const enough = 200
	v := os.Getenv("SCAN_AZURITE")
	if v == "" {
		return enough
	}
	n, err := strconv.Atoi(v)
	if err != nil || n < enough {
		t.Fatalf("SCAN_AZURITE is %q; set it to a number of blobs from %d on", v, enough)
	}
	return n
}

// upload fills some containers of Azurite, and returns the names that it has accepted, and one to delete later.
func upload(t *testing.T, s *service.Client) (accepted []string, later [2]string) {
	t.Helper()
	run := time.Now().UnixNano()
	names := trickyNames()
	group, ctx := errgroup.WithContext(t.Context())
	group.SetLimit(4)
	rejected := make([]error, len(names))
	var all []string
	for i := range 3 {
		container := fmt.Sprintf("scan-%d-%d", run, i)
		all = append(all, container)
		if _, err := s.CreateContainer(t.Context(), container, nil); err != nil {
			t.Fatal(err)
		}
	}
	put := func(container, name string, length int, tier *blob.AccessTier) error {
		_, err := s.NewContainerClient(container).NewBlockBlobClient(name).Upload(ctx,
			streaming.NopCloser(strings.NewReader(strings.Repeat("x", length))), &blockblob.UploadOptions{Tier: tier,
				HTTPHeaders: &blob.HTTPHeaders{BlobContentType: to.Ptr(fmt.Sprintf("test/%d; a=\"<&>\"", length%7))}})
		return err
	}
	for i, name := range names {
		group.Go(func() error { rejected[i] = put(all[i%2], name, i, nil); return nil })
	}
	for i := range azuriteBlobs(t) {
		tier := []*blob.AccessTier{nil, to.Ptr(blob.AccessTierCool), to.Ptr(blob.AccessTierHot)}[i%3]
		group.Go(func() error { return put(all[2], fmt.Sprintf("dir %d/file %d", i%9, i), i, tier) })
	}
	if err := group.Wait(); err != nil {
		t.Fatal(err)
	}
	for i, err := range rejected {
		if err != nil {
			t.Logf("Azurite rejects %q: %.80s", names[i], strings.ReplaceAll(err.Error(), "\n", " "))
			continue
		}
		accepted = append(accepted, all[i%2]+"/"+strings.ReplaceAll(names[i], `\`, "/")) // as the service does
	}
	ctx = t.Context() // that of the group has ended
	c := s.NewContainerClient(all[2])
	logs := c.NewAppendBlobClient("log")
	pages := c.NewPageBlobClient("pages")
	for _, try := range []func() error{
		func() error { _, err := logs.Create(ctx, nil); return err },
		func() error {
			_, err := logs.AppendBlock(ctx, streaming.NopCloser(strings.NewReader("line")), nil)
			return err
		},
		func() error { _, err := pages.Create(ctx, 512, nil); return err },
		func() error { _, err := logs.CreateSnapshot(ctx, nil); return err },
		func() error { _, err := c.NewBlobClient("dir 1/file 1").CreateSnapshot(ctx, nil); return err },
		func() error { _, err := c.NewBlobClient("dir 2/file 2").Delete(ctx, nil); return err },
	} {
		if err := try(); err != nil {
			t.Fatal(err)
		}
	}
	return accepted, [2]string{all[2], "dir 3/file 3"}
}

// listing is what the Azure SDK lists.
func listing(t *testing.T, s *service.Client) map[string]blobRow {
	t.Helper()
	rows := map[string]blobRow{}
	for containers := s.NewListContainersPager(nil); containers.More(); {
		page, err := containers.NextPage(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range page.ContainerItems {
			if *c.Name == azure.Container {
				continue
			}
			for blobs := s.NewContainerClient(*c.Name).NewListBlobsFlatPager(nil); blobs.More(); {
				page, err := blobs.NextPage(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				for _, b := range page.Segment.BlobItems {
					row := blobRow{
						ETag:        strings.Trim(string(*b.Properties.ETag), `"`),
						Length:      *b.Properties.ContentLength,
						ContentType: *b.Properties.ContentType,
						Type:        string(*b.Properties.BlobType),
					}
					if tier := b.Properties.AccessTier; tier != nil && b.Properties.AccessTierInferred == nil {
						row.Tier = string(*tier)
					}
					rows[*c.Name+"/"+*b.Name] = row
				}
			}
		}
	}
	return rows
}

// The rows of an account in Azurite are what the Azure SDK lists: every name byte for byte, and every column.
func TestScanOfAzurite(t *testing.T) {
	t.Parallel()
	account := takeAccount(t)
	s, err := service.NewClientFromConnectionString(account.connection, nil)
	if err != nil {
		t.Fatal(err)
	}
	accepted, gone := upload(t, s)
	sink, settings := account.feed(t)
	feed, err := feedsim.New(sink, feedsim.Spec{Shards: 2, Start: time.Now().UTC().Truncate(time.Hour)})
	if err != nil {
		t.Fatal(err)
	}
	if err := feed.Open(t.Context()); err != nil {
		t.Fatal(err)
	}
	name, topic := names(t, shared.KafkaBrokers, -1)
	configure(t, shared.KafkaBrokers, topic, "message.timestamp.after.max.ms", "86400000") // see below
	settings = append(settings, "NAME="+name, "TOPIC="+topic, "KAFKA_BROKERS="+strings.Join(shared.KafkaBrokers, ","),
		"INITIAL_SCAN=yes", "POLL_INTERVAL=200ms", "COMMIT_INTERVAL=100ms")
	table, rows := newBlobTable(), newScanRows()
	c := consume(t, shared.KafkaBrokers, topic, table, rows)
	want := listing(t, s)
	began := time.Now()
	start(t, []string{"run"}, settings...)
	c.until(t, time.Minute, "each blob has a row", func() bool { return rows.n >= len(want) })
	rate := float64(len(want)) / time.Since(began).Seconds()
	if !maps.Equal(table.rows, want) {
		equal(t, table.rows, want)
	}
	for _, path := range accepted {
		if _, ok := table.rows[path]; !ok {
			t.Errorf("%q has no row", path)
		}
	}
	kinds := map[blobRow]int{}
	for _, row := range want {
		kinds[blobRow{Type: row.Type, Tier: row.Tier}]++
	}
	t.Logf("%d blobs, %d of them with tricky names: %v; %.0f rows/s from the start", len(want), len(accepted), kinds, rate)

	// An event deletes one behind its row. The feed is finalized up to an hour that has not come yet, so that its
	// marker is behind the listing.
	if _, err := s.NewContainerClient(gone[0]).NewBlobClient(gone[1]).Delete(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	deletion := []feedsim.Change{{Container: gone[0], Blob: gone[1], Delete: true, Ticks: time.Now().UnixNano() / 100}}
	if err := feed.AppendChanges(t.Context(), deletion, nil); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if err := feed.Next(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.until(t, time.Minute, "markers", func() bool { return c.marks >= partitions })
	c.drain(t)
	c.check(t)
	equal(t, table.rows, listing(t, s))
	verb(t, "verify --feed --account --wait 10s", settings)
}
