//go:build integration

package integration

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// realFeed is a change feed of 2020 as Azure wrote it; realEvents its events as other readers decoded them.
const (
	realFeed   = "../testdata/real-2020"
	realEvents = "../testdata/real-2020/events.jsonl"
)

// realIDs returns the ids of all events but Control, by blob in the feed's order.
func realIDs(t *testing.T) (ids map[string]bool, byBlob map[string][]string) {
	t.Helper()
	f, err := os.Open(realEvents)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	ids, byBlob = map[string]bool{}, map[string][]string{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var e struct{ ID, Subject, EventType string }
		if err := json.Unmarshal(lines.Bytes(), &e); err != nil {
			t.Fatal(err)
		}
		if e.EventType == "Control" {
			continue
		}
		path := strings.Replace(strings.TrimPrefix(e.Subject, "/blobServices/default/containers/"), "/blobs/", "/", 1)
		ids[e.ID] = true
		byBlob[path] = append(byBlob[path], e.ID)
	}
	if err := lines.Err(); err != nil || len(ids) < 700 {
		t.Fatalf("read %d events: %v", len(ids), err)
	}
	return ids, byBlob
}

func fileURL(t *testing.T, dir string) string {
	t.Helper()
	abs, err := filepath.Abs(dir)
	if err != nil {
		t.Fatal(err)
	}
	return "file://" + abs
}
