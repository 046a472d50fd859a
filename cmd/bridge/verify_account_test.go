package main

import (
	"errors"
	"fmt"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/feedsim"
	"blobfeed/internal/feedsim/account"
	"blobfeed/source/inventory"
)

// A topic that begins with a scan, and has the changes behind it, is the account; each key that is not is printed.
func TestVerifyAccount(t *testing.T) {
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
	if code != exitBroken || !strings.Contains(stdout, `key ["odd/tab\there"]: the topic has a blob of 13 bytes`) ||
		!strings.Contains(stderr, "account") {
		t.Errorf("%d: %s%s", code, stdout, stderr)
	}
}
