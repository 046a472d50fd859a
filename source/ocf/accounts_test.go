package ocf

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hamba/avro/v2"

	"blobfeed/internal/testing/realfeed"
)

// Every event of every recorded account is decoded as hamba/avro decodes it, which knows nothing of the feed.
func TestRealAccounts(t *testing.T) {
	for _, a := range realfeed.Accounts {
		dir := a.Unpack(t, "../..")
		files, err := filepath.Glob(filepath.Join(dir, "log/*/*/*/*/*/*.avro"))
		if err != nil {
			t.Fatal(err)
		}
		events := 0
		for _, path := range files {
			name, _ := filepath.Rel(dir, path)
			b, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			h, err := ParseHeader(b, Limits{})
			if err != nil {
				t.Fatalf("%s %s: %v", a.Name, name, err)
			}
			schema, err := avro.Parse(h.Schema)
			if err != nil {
				t.Fatalf("%s %s: %v", a.Name, name, err)
			}
			blocks, got, err := read(b)
			if err != nil {
				t.Fatalf("%s %s: %v", a.Name, name, err)
			}
			n := 0
			for _, blk := range blocks {
				r := avro.NewReader(strings.NewReader(blk.Data), 1<<16)
				for range blk.Count {
					var want any
					if r.ReadVal(schema, &want); r.Error != nil {
						t.Fatalf("%s %s: event %d: %v", a.Name, name, n, r.Error)
					}
					compare(t, a.Name+" "+name, n, &got[n], want.(map[string]any))
					n++
				}
			}
			if n != len(got) {
				t.Errorf("%s %s: %d events, want %d", a.Name, name, len(got), n)
			}
			events += n
		}
		if events != a.Events {
			t.Errorf("%s has %d events, want %d", a.Name, events, a.Events)
		}
	}
}

func compare(t *testing.T, name string, i int, e *Event, want map[string]any) {
	t.Helper()
	data, _ := want["data"].(map[string]any)
	for field, pair := range map[string][2]any{
		"id":               {e.ID, want["id"]},
		"topic":            {e.Topic, want["topic"]},
		"subject":          {e.Subject, want["subject"]},
		"eventType":        {e.EventType, want["eventType"]},
		"eventTime":        {e.EventTime, want["eventTime"]},
		"api":              {e.API, data["api"]},
		"clientRequestId":  {e.ClientRequestID, data["clientRequestId"]},
		"requestId":        {e.RequestID, data["requestId"]},
		"etag":             {e.ETag, data["etag"]},
		"contentType":      {e.ContentType, data["contentType"]},
		"contentLength":    {e.ContentLength, data["contentLength"]},
		"blobType":         {e.BlobType, data["blobType"]},
		"blobVersion":      {e.BlobVersion, data["blobVersion"]},
		"containerVersion": {e.ContainerVersion, data["containerVersion"]},
		"blobTier":         {e.BlobTier, data["blobTier"]},
		"url":              {e.URL, data["url"]},
		"snapshot":         {e.Snapshot, data["snapshot"]},
		"sequencer":        {e.Sequencer, data["sequencer"]},
	} {
		got, want := pair[0], pair[1]
		if branch, ok := want.(map[string]any); ok && len(branch) == 1 { // of a union
			for _, want = range branch {
			}
		}
		if want == nil {
			want = ""
		}
		if got != want {
			t.Fatalf("%s, event %d: %s is %v, want %v", name, i, field, got, want)
		}
	}
}
