package envelope

import (
	"bytes"
	"strings"
	"testing"

	"blobfeed/source"
	"blobfeed/source/ocf"
)

// Columns that are left out are in no record of any envelope or format, nor in a schema; the others stay.
func TestExcludeColumns(t *testing.T) {
	ev := made()[3] // with tags
	ev.ClientRequestID, ev.RequestID, ev.ETag = "personal-client", "personal-request", "kept-etag"
	ev.BlobTagsUpdated = []ocf.TagSet{{Name: "current",
		Tags: []ocf.Pair{{Name: "personal-tag", Value: "personal-value"}}}}
	for _, f := range forms() {
		f.o.Exclude = []string{"client_request_id", "request_id", "blob_tags_updated", "account"}
		e := encoder(t, f.o)
		var r Record
		if _, _, err := e.Append(nil, &r, &ev, source.Position{Segment: segment("2025/10/05/0600")}); err != nil {
			t.Fatal(err)
		}
		if bytes.Contains(r.Value, []byte("personal")) || bytes.Contains(r.Value, []byte("client_request_id")) {
			t.Errorf("%s: %q", f.name, r.Value)
		}
		if f.o.Envelope != KeyOnly && !bytes.Contains(r.Value, []byte("kept-etag")) {
			t.Errorf("%s: %q has no etag", f.name, r.Value)
		}
		subjects, err := Schemas(f.o)
		if err != nil {
			t.Fatal(err)
		}
		for _, s := range subjects {
			for _, name := range f.o.Exclude {
				if strings.Contains(s.Schema, `"name":"`+name+`"`) {
					t.Errorf("%s: the schema of %s has %s", f.name, s.Name, name)
				}
			}
		}
	}
}

// A column that does not exist, or that is the key, would stay silently.
func TestExcludeUnknownColumns(t *testing.T) {
	o := Defaults(JSON, Wrapped)
	o.Exclude = []string{"client_requestid", "path", "etag"}
	err := o.Validate()
	if err == nil || !strings.Contains(err.Error(), "there is no column client_requestid") ||
		!strings.Contains(err.Error(), "path is the key") || strings.Contains(err.Error(), "etag") {
		t.Errorf("err = %v", err)
	}
}
