package envelope

import (
	"bytes"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"blobfeed/source/ocf"
)

func TestNamesAreVerbatim(t *testing.T) {
	for _, name := range []string{"a", "a b", "x/blobs/y", "blobs/x", "/blobs/", "/leading", "//two", "trailing/", "/",
		"100%25", "%2F", "%", "a+b", "a#b", "a?b=c&d", `back\slash`, `"quoted"`,
		"../up", "tab\tnew\nline", "ünï😀", "e\u0301", "\u2028", "<&>", strings.Repeat("n", 1024), "$blobchangefeed",
		"containers/c/blobs/b"} {
		ev := changed(func(e *ocf.Event) {
			e.Subject, e.URL = "/blobServices/default/containers/photos/blobs/"+
				name, "https://acct.blob.core.windows.net/photos/other%20name"
		})
		for _, format := range []KeyFormat{KeyJSONArray, KeyJSONObject, KeyString} {
			r, v, emit := encoded(t, Options{Events: state, KeyInValue: true, KeyFormat: format}, ev)
			if !emit || v.After["blob"] != name || v.After["container"] != "photos" ||
				v.After["path"] != "photos/"+name || !slices.Equal(v.Key, []string{"photos/" + name}) {
				t.Errorf("%q: %v, %v", name, v.Key, v.After)
			}
			var array []string
			var object struct{ Path string }
			switch {
			case format == KeyString && string(r.Key) != "photos/"+name,
				format == KeyJSONArray && (json.Unmarshal(r.Key, &array) != nil || !slices.Equal(array, v.Key)),
				format == KeyJSONObject && (json.Unmarshal(r.Key, &object) != nil || object.Path != v.Key[0]):
				t.Errorf("%q: key %s", name, r.Key)
			}
		}
	}
	// Bytes that are no text: no error, and in a string key they are as they were.
	if r, _, emit := encoded(t, Options{KeyFormat: KeyString},
		changed(func(e *ocf.Event) { e.Subject = "/blobServices/default/containers/c/blobs/\xff\xfe" })); !emit ||
		string(r.Key) != "c/\xff\xfe" {
		t.Errorf("%v, %q", emit, r.Key)
	}
}

func TestSpecialContainers(t *testing.T) {
	for _, container := range []string{"$root", "$web", "$logs", "$blobchangefeed", "a-b-c", "blobs"} {
		ev := changed(func(e *ocf.Event) {
			e.Subject = "/blobServices/default/containers/" + container + "/blobs/index.html"
		})
		r, v, emit := encoded(t, Options{KeyFormat: KeyString}, ev)
		if !emit || string(r.Key) != container+"/index.html" || v.After["container"] != container {
			t.Errorf("%s: %v, %s", container, emit, r.Key)
		}
		for filter, want := range map[*Filter]bool{{Containers: []string{container}}: true,
			{ExcludeContainers: []string{container}}: false, {Containers: []string{"web"}}: false} {
			if match, err := filter.Match(&ev); err != nil || match != want {
				t.Errorf("%s by %+v: %v, %v", container, filter, match, err)
			}
		}
	}
}

func TestTextsAreNotParsed(t *testing.T) {
	for _, text := range []string{"PowerShell upload #1", "{not-a-guid}", "0", "null", ""} {
		_, v, emit := encoded(t, Options{}, changed(func(e *ocf.Event) {
			e.ClientRequestID, e.RequestID, e.ID, e.ETag, e.Sequencer = text, text, text, text, text
		}))
		for _, column := range []string{"client_request_id", "request_id", "event_id", "etag", "sequencer"} {
			if got := v.After[column]; !emit || text == "" && got != nil || text != "" && got != text {
				t.Errorf("%s: %q becomes %v", column, text, got)
			}
		}
	}
}

// Nothing is taken from the url; without one the record has all but it.
func TestURLMayBeEmpty(t *testing.T) {
	with := changed(func(e *ocf.Event) { e.URL = "https://acct.blob.core.windows.net/x/y" })
	r1, v1, _ := encoded(t, everything, with)
	r2, v2, emit := encoded(t, everything, changed(func(e *ocf.Event) { e.URL = "" }))
	if !emit || !bytes.Equal(r1.Key, r2.Key) || v2.After["url"] != nil || v1.After["url"] != with.URL ||
		v2.After["account"] != "simacct" || v2.After["path"] != "photos/a b.jpg" {
		t.Errorf("%v, %s", emit, r2.Value)
	}
	v1.After["url"] = nil
	if !reflect.DeepEqual(v1, v2) {
		t.Errorf("%v and %v", v1, v2)
	}
}
