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
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/blobsink"
	"blobfeed/source/azure"
)

// freeAccounts are those of Azurite that no test uses.
var freeAccounts = make(chan string, len(stack.AzuriteAccounts))

func init() {
	for _, name := range stack.AzuriteAccounts {
		freeAccounts <- name
	}
}

// azuriteAccount is an account that one test uses at a time.
type azuriteAccount struct{ name, connection string }

func takeAccount(t *testing.T) azuriteAccount {
	t.Helper()
	name := <-freeAccounts
	t.Cleanup(func() { freeAccounts <- name })
	return azuriteAccount{name, strings.ReplaceAll(shared.AzureConnectionString, stack.AzuriteAccount, name)}
}

// azurite returns the feed's container in an account, and the settings with which the bridge reads it.
func azurite(t *testing.T) (sink feedsim.Sink, settings []string) {
	t.Helper()
	return takeAccount(t).feed(t)
}

func (a azuriteAccount) feed(t *testing.T) (sink feedsim.Sink, settings []string) {
	t.Helper()
	cl, err := container.NewClientFromConnectionString(a.connection, azure.Container, nil)
	if err != nil {
		t.Fatal(err)
	}
	// A test begins with an empty feed.
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
	endpoint := fmt.Sprintf("%s://%s/%s", u.Scheme, u.Host, a.name)
	return sink, []string{"SOURCE_URL=" + endpoint, "SOURCE_AUTH=shared_key", "SOURCE_ACCOUNT=" + a.name,
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
