package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/status"
	"blobfeed/internal/testing/fakebroker"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
)

func init() { scanWait = 50 * time.Millisecond }

// A topic that begins with a scan, and has the changes behind it, is the account; each key that is not is printed.
func TestVerifyAccount(t *testing.T) {
	t.Parallel()
	clusterFor(t)
	now := time.Date(2026, 1, 1, 0, 5, 0, 0, time.UTC)
	a := account.New(func() time.Time { return now })
	for i, name := range []string{"a b", "ü/é.txt", "100%", "%41", "a+b", "q?x=1&y=2", "#1", "\"quoted\"", "<&>",
		"a//b", "x/", "😀", "back\\slash", "tab\there", "\u0001"} {
		a.Put("odd", inventory.Blob{Name: name, Length: int64(i)})
		a.Put("$web", inventory.Blob{Name: fmt.Sprint(i)})
	}
	a.Record()
	files := account.NewFiles()
	feed, err := feedsim.New(files, feedsim.Spec{Shards: 2})
	if err := errors.Join(err, feed.Open(t.Context())); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(&account.Server{Account: a, Feed: files})
	defer server.Close()
	setAll(t, map[string]string{
		"SOURCE_URL": server.URL + "/acct", "SOURCE_AUTH": "shared_key", "SOURCE_ACCOUNT": "acct", "SOURCE_KEY": "a2V5",
		"EVENTS": "state", "INITIAL_SCAN": "yes",
	})
	runToEnd(t)
	a.Delete("odd", "100%")
	a.Put("odd", inventory.Blob{Name: "a//b", Length: 99})
	_, err = a.Publish(t.Context(), feed, nil, nil)
	if err := errors.Join(err, feed.Next(t.Context())); err != nil {
		t.Fatal(err)
	}
	now = now.Add(time.Hour)
	runToEnd(t)
	if code, stdout, stderr := call(t, "verify", "--account", "--feed"); code != exitOK ||
		!strings.Contains(stdout, "(29 checked)") {
		t.Fatalf("%d: %s%s", code, stdout, stderr)
	}
	a.Delete("odd", "tab\there")
	code, stdout, stderr := call(t, "verify", "--account", "--wait", "0s")
	if code != exitBroken || !strings.Contains(stdout, "checked): repair the topic with bridge scan --sweep\n") ||
		!strings.Contains(stdout, `key ["odd/tab\there"]: the topic has a blob of 13 bytes`) ||
		!strings.Contains(stderr, "account") {
		t.Errorf("%d: %s%s", code, stdout, stderr)
	}
}

// A scan of an account whose feed ended years ago: nothing of the feed is delivered behind the rows, and verify agrees
// with the account and the feed. A scan that no instance has begun is in the report.
func TestVerifyScanOfOldFeed(t *testing.T) {
	t.Parallel()
	c := clusterFor(t)
	cl := fakebroker.Client(t, c, kgo.DefaultProduceTopic(changes))
	now := time.Date(2020, 5, 29, 10, 5, 0, 0, time.UTC)
	a := account.New(func() time.Time { return now })
	for i := range 40 {
		a.Put("photos", inventory.Blob{Name: fmt.Sprint(i), Length: 7})
	}
	a.Record()
	a.Delete("photos", "3")
	a.Put("photos", inventory.Blob{Name: "4", Length: 99})
	files := account.NewFiles()
	feed, err := feedsim.New(files, feedsim.Spec{Shards: 2, Start: now.Truncate(time.Hour)})
	if err := errors.Join(err, feed.Open(t.Context())); err != nil {
		t.Fatal(err)
	}
	_, err = a.Publish(t.Context(), feed, nil, nil)
	if err := errors.Join(err, feed.Next(t.Context()), feed.Finalize(t.Context())); err != nil {
		t.Fatal(err)
	}
	now = time.Now()
	server := httptest.NewServer(&account.Server{Account: a, Feed: files})
	defer server.Close()
	setAll(t, map[string]string{
		"SOURCE_URL": server.URL + "/acct", "SOURCE_AUTH": "shared_key", "SOURCE_ACCOUNT": "acct", "SOURCE_KEY": "a2V5",
		"EVENTS": "state", "INITIAL_SCAN": "yes",
	})
	runToEnd(t)
	says := func(verb string, texts ...string) {
		t.Helper()
		code, stdout, stderr := call(t, strings.Fields(verb)...)
		for _, text := range texts {
			if code != exitOK || !strings.Contains(stdout, text) {
				t.Errorf("%s: exit code %d, want %q:\n%s%s", verb, code, text, stdout, stderr)
			}
		}
	}
	says("verify --feed --account", "wrote 39 of the records\n",
		"feed: 2 events, 2 for the topic, 0 of them must be in it",
		"holds        account", "note: 2 events from before the initial scan need not be in the topic")
	says("status", "segment   complete up to 2020/05/29/1100\n", ": complete, 39 rows")
	type result struct {
		code           int
		stdout, stderr string
	}
	wait := func(args ...string) <-chan result {
		t.Helper()
		ended := make(chan result, 1)
		go func() {
			var r result
			r.code, r.stdout, r.stderr = call(t, append([]string{"scan", "--wait"}, args...)...)
			ended <- r
		}()
		for _, out, _ := call(t, "status"); !strings.Contains(out, ": requested"); {
			_, out, _ = call(t, "status")
		}
		return ended
	}
	waitBehindAnOpenTransaction(t, c)
	says("scan --sweep --plan", "a sweep would write at most 0 deletions: it compares 39 keys with 39 blobs\n",
		"it takes 1 list request for rows and 0 HEAD requests, about $0.00", "nothing was written\n")
	says("scan --sweep --plan --output json", `"deletions":0`)
	ended := wait("--sweep")
	says("status", "scan      scan with sweep ", ": requested, no instance has begun it\n")
	runToEnd(t)
	if r := <-ended; r.code != exitOK || !strings.Contains(r.stdout, "no instance runs: the next start carries it out") ||
		!strings.Contains(r.stdout, ": requested, no instance has begun it\n") ||
		!strings.Contains(r.stdout, ": complete, 39 rows, 0 deletions") {
		t.Errorf("it waited for the end of the scan: %+v", r)
	}
	says("status", "scan      scan with sweep ", ": complete, 39 rows, 0 deletions")
	ended = wait("--container", "photos")
	says("scan --cancel", " cancelled; no instance had begun it\n")
	if r := <-ended; r.code != exitFailed || !strings.Contains(r.stderr, "it was cancelled before it began") {
		t.Errorf("it waited for a scan that was cancelled: %+v", r)
	}
	says("scan --container photos", "the next start carries it out")
	code, _, stderr := call(t, "scan", "--sweep")
	if code != exitFailed || !strings.Contains(stderr, " is requested and has not begun: start an instance, or") {
		t.Errorf("a second request: exit code %d: %s", code, stderr)
	}
	says("scan --cancel", " cancelled; no instance had begun it\n")
	runToEnd(t)
	says("status", "scan      scan with sweep ", ": complete, 39 rows, 0 deletions")
	code, _, stderr = call(t, "scan", "--cancel")
	if code != exitFailed || !strings.Contains(stderr, "no scan is under way") {
		t.Errorf("a second cancel: exit code %d: %s", code, stderr)
	}
	setenv(t, "BRIDGE_EVENT_TYPES", "!BlobDeleted")
	code, _, stderr = call(t, "scan", "--sweep")
	if code != exitFailed || !strings.Contains(stderr, "BRIDGE_EVENT_TYPES leaves out BlobDeleted") {
		t.Errorf("a sweep that may not delete: exit code %d: %s", code, stderr)
	}
	setenv(t, "BRIDGE_EVENT_TYPES", "")
	code, _, stderr = call(t, "scan", "--container", "fotos")
	if code != exitFailed || !strings.Contains(stderr, "the account has no container fotos") {
		t.Errorf("a container that does not exist: exit code %d: %s", code, stderr)
	}
	says("verify --feed --account", "topic changes: 78 records", "holds        account")
	a.Delete("photos", "7") // the feed has no event of these
	a.Delete("photos", "8")
	ended = wait("--sweep", "--max-deletions", "1", "--output", "json")
	runToEnd(t)
	var scan status.Scan // one document, at the end
	if r := <-ended; r.code != exitFailed || !strings.Contains(r.stderr, "stopped: more blobs are gone") ||
		json.Unmarshal([]byte(r.stdout), &scan) != nil || scan.State != "stopped" || scan.Rows != 37 || scan.Deleted != 1 {
		t.Errorf("it waited for a sweep that stops: %+v", r)
	}
	for i := range 25_000 { // for less than 12,500 HEAD requests the price is below a cent
		cl.Produce(t.Context(), &kgo.Record{Key: fmt.Appendf(nil, `["photos/gone %d"]`, i), Value: []byte("{}")}, nil)
	}
	if err := cl.Flush(t.Context()); err != nil {
		t.Fatal(err)
	}
	says("scan --sweep --plan", "a sweep would write at most 25,001 deletions: it compares 25,038 keys with 37 blobs\n",
		"it takes 1 list request for rows and 25,001 HEAD requests, about $0.01 ", "nothing was written\n")
}

// An instance was killed at a commit, and its transaction, which is open for now, hides the request: to wait for the scan
// goes on.
func waitBehindAnOpenTransaction(t *testing.T, c *kfake.Cluster) {
	t.Helper()
	open := fakebroker.Client(t, c, kgo.TransactionalID("killed"), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	err := open.BeginTransaction()
	if err == nil {
		err = open.ProduceSync(t.Context(), &kgo.Record{Topic: "b.offsets", Key: []byte("?")}).FirstErr()
	}
	if err != nil {
		t.Fatal(err)
	}
	var looks atomic.Int64
	c.ControlKey(int16(kmsg.ListOffsets), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		r := req.(*kmsg.ListOffsetsRequest)
		if r.IsolationLevel == 0 && len(r.Topics) > 0 && r.Topics[0].Topic == "b.offsets" &&
			r.Topics[0].Partitions[0].Timestamp == -1 {
			looks.Add(1)
		}
		return nil, nil, false
	})
	ended := make(chan string, 1)
	go func() {
		_, _, stderr := call(t, "scan", "--wait", "--container", "photos")
		ended <- stderr
	}()
	await(t, "it looks a second time", func() bool { return looks.Load() >= 4 || len(ended) > 0 })
	if len(ended) > 0 {
		t.Fatalf("it did not wait: %s", <-ended)
	}
	if err := open.EndTransaction(t.Context(), kgo.TryAbort); err != nil {
		t.Fatal(err)
	}
	await(t, "the request shows", func() bool {
		_, out, _ := call(t, "status")
		return strings.Contains(out, ": requested")
	})
	if code, _, stderr := call(t, "scan", "--cancel"); code != exitOK {
		t.Error(stderr)
	}
	if stderr := <-ended; !strings.Contains(stderr, "it was cancelled before it began") {
		t.Error(stderr)
	}
}
