//go:build integration

package integration

import (
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"

	"blobfeed/integration/stack"
	"blobfeed/internal/feedsim"
	"blobfeed/internal/feedsim/blobsink"
	"blobfeed/source/azure"
)

// azurite returns the feed's container in an account, and the settings with which the bridge reads it.
func azurite(t *testing.T) (sink feedsim.Sink, settings []string) {
	t.Helper()
	cl, err := container.NewClientFromConnectionString(shared.AzureConnectionString, azure.Container, nil)
	if err != nil {
		t.Fatal(err)
	}
	// One account, one feed: a test begins with an empty one.
	if _, err := cl.Delete(t.Context(), nil); err == nil {
		t.Log("removed the feed of another test")
	}
	if sink, err = blobsink.New(t.Context(), cl); err != nil {
		t.Fatal(err)
	}
	u, err := url.Parse(cl.URL())
	if err != nil {
		t.Fatal(err)
	}
	endpoint := fmt.Sprintf("%s://%s/%s", u.Scheme, u.Host, stack.AzuriteAccount)
	return sink, []string{"SOURCE_URL=" + endpoint, "SOURCE_AUTH=shared_key", "SOURCE_ACCOUNT=" + stack.AzuriteAccount,
		"SOURCE_KEY=" + stack.AzuriteKey}
}

// uploadFeed copies a feed from a directory and returns the settings with which the bridge reads it.
func uploadFeed(t *testing.T, dir string) []string {
	t.Helper()
	sink, settings := azurite(t)
	root := os.DirFS(dir)
	err := fs.WalkDir(root, ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		data, err := fs.ReadFile(root, name)
		if err != nil {
			return err
		}
		if strings.HasSuffix(name, ".avro") {
			return sink.Append(t.Context(), name, data)
		}
		return sink.Put(t.Context(), name, data)
	})
	if err != nil {
		t.Fatal(err)
	}
	return settings
}
