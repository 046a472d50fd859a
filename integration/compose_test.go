//go:build integration

package integration

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob/container"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/compose"
	"blobfeed/integration/stack"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/blobsink"
)

// The Compose file does what it promises: a feed that is put into Azurite arrives at the console consumer and, from
// this machine, at the published ports. The bridge is the image of a release, and runs without rights.
func TestCompose(t *testing.T) {
	t.Parallel()
	file, err := compose.Read("../docker-compose.yaml")
	if err != nil {
		t.Fatal(err)
	}
	img := builtImage(t)
	p, err := compose.Up(t.Context(), file, t.TempDir(), img.Command)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the bridge:\n%s\nthe consumer:\n%s", p.Log("bridge"), p.Log("consumer"))
		}
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	eventually(t, time.Minute, "a warning that there is no feed", func() bool {
		return strings.Contains(p.Log("bridge"), `"level":"WARN","msg":"retrying"`)
	})
	unprivileged(t, p)

	web := &http.Client{Transport: &http.Transport{DialContext: p.Dial, DisableKeepAlives: true}}
	credential, err := container.NewSharedKeyCredential(stack.AzuriteAccount, stack.AzuriteKey)
	if err != nil {
		t.Fatal(err)
	}
	cl, err := container.NewClientWithSharedKeyCredential("http://localhost:10000/"+stack.AzuriteAccount+"/"+
		blobsink.Container, credential, &container.ClientOptions{ClientOptions: azcore.ClientOptions{Transport: web}})
	if err != nil {
		t.Fatal(err)
	}
	sink, err := blobsink.New(t.Context(), cl)
	if err != nil {
		t.Fatal(err)
	}
	if err := feedsim.Write(t.Context(), sink, feedsim.Spec{Start: time.Now().Add(-3 * time.Hour).Truncate(time.Hour),
		EventsPerSegment: 100, Blobs: 20}, nil); err != nil {
		t.Fatal(err)
	}
	n := publishedRecords(t, p)
	eventually(t, time.Minute, "the same records at the console consumer", func() bool {
		return strings.Count(p.Log("consumer"), "Partition:") == n
	})
	eventually(t, time.Minute, "the image's health check", func() bool {
		check := img.Exec(t.Context(), nil, nil, img.Config.Healthcheck.Test[1:]...)
		return p.Command(t.Context(), "bridge", check.Args).Run() == nil
	})
	for _, url := range []string{"http://localhost:8080/", "http://localhost:8081/apis/ccompat/v7/subjects"} {
		resp, err := web.Get(url)
		if err != nil {
			t.Fatal(err)
		}
		if text, err := io.ReadAll(resp.Body); resp.StatusCode != http.StatusOK || err != nil {
			t.Errorf("%s: %s, %s, %v", url, resp.Status, text, err)
		}
		resp.Body.Close()
	}
}

// publishedRecords reads the topic at the published address until every partition has a marker, and counts.
func publishedRecords(t *testing.T, p *compose.Project) (n int) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := client(t, []string{"localhost:9092"}, kgo.Dialer(p.Dial), kgo.ConsumeTopics("blob-changes"),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()), kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.UnknownTopicRetries(-1))
	marked := map[int32]bool{}
	for len(marked) < partitions {
		fetches := cl.PollFetches(ctx)
		if err := ctx.Err(); err != nil {
			t.Fatalf("%d records, markers on %d partitions: %v", n, len(marked), err)
		}
		fetches.EachRecord(func(r *kgo.Record) {
			n++
			if strings.HasPrefix(string(r.Value), `{"resolved":`) {
				marked[r.Partition] = true
			}
		})
	}
	if n <= partitions {
		t.Errorf("%d records, which are markers", n)
	}
	return n
}

// unprivileged looks at the bridge's process.
func unprivileged(t *testing.T, p *compose.Project) {
	t.Helper()
	ids, err := p.Processes("bridge")
	if err != nil {
		t.Fatal(err)
	}
	found, four, none := false, strings.Repeat(fmt.Sprintf("\t%d", nobody), 4)[1:], strings.Repeat("0", 16)
	for _, id := range ids {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", id))
		if err != nil {
			t.Fatal(err)
		}
		status := string(text)
		if !strings.HasPrefix(status, "Name:\tbridge\n") {
			continue // one that holds the container
		}
		found = true
		for line, want := range map[string]string{"Uid": four, "Gid": four, "CapPrm": none, "CapEff": none} {
			_, is, _ := strings.Cut(status, "\n"+line+":\t")
			if !strings.HasPrefix(is, want+"\n") {
				t.Errorf("the bridge's %s is not %s:\n%s", line, want, status)
			}
		}
	}
	if !found {
		t.Errorf("none of the processes %v is the bridge", ids)
	}
}
