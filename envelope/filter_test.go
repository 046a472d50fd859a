package envelope

import (
	"testing"

	"blobfeed/source/ocf"
)

func TestFilter(t *testing.T) {
	ev := ocf.Event{
		Subject: "/blobServices/default/containers/photos/blobs/2026/a b.jpg", EventType: "BlobCreated",
		BlobType:  "BlockBlob",
		EventTime: "2026-01-01T00:00:00.0000001Z", Sequencer: "05",
	}
	at := Timestamp{Wall: 1767225600000000100, Logical: 5}
	for name, c := range map[string]struct {
		f    Filter
		want bool
	}{
		"nothing said":            {Filter{}, true},
		"container":               {Filter{Containers: []string{"x", "photos"}}, true},
		"other container":         {Filter{Containers: []string{"photo"}}, false},
		"excluded container":      {Filter{ExcludeContainers: []string{"photos"}}, false},
		"prefix":                  {Filter{Prefixes: []string{"photos/2026/"}}, true},
		"prefix is the container": {Filter{Prefixes: []string{"photos"}}, true},
		"prefix of the container": {Filter{Prefixes: []string{"pho"}}, true},
		"prefix with slash":       {Filter{Prefixes: []string{"photos/"}}, true},
		"prefix is longer":        {Filter{Prefixes: []string{"photosx"}}, false},
		"prefix elsewhere":        {Filter{Prefixes: []string{"photos/2025/"}}, false},
		"excluded prefix":         {Filter{ExcludePrefixes: []string{"photos/2026"}}, false},
		"suffix":                  {Filter{Suffixes: []string{".png", ".jpg"}}, true},
		"other suffix":            {Filter{Suffixes: []string{".png"}}, false},
		"excluded suffix":         {Filter{ExcludeSuffixes: []string{".jpg"}}, false},
		"event type":              {Filter{EventTypes: []string{"BlobDeleted"}}, false},
		"excluded event type":     {Filter{ExcludeEventTypes: []string{"BlobCreated"}}, false},
		"blob type":               {Filter{BlobTypes: []string{"PageBlob"}}, false},
		"from it on":              {Filter{From: at}, true},
		"from after it on":        {Filter{From: Timestamp{at.Wall, at.Logical + 1}}, false},
		"up to it":                {Filter{To: at}, true},
		"up to before it":         {Filter{To: Timestamp{at.Wall, at.Logical - 1}}, false},
	} {
		got, err := c.f.Match(&ev)
		if err != nil || got != c.want {
			t.Errorf("%s: %v, %v", name, got, err)
		}
		if c.f.Active() != (name != "nothing said") {
			t.Errorf("%s: active is %v", name, c.f.Active())
		}
	}
	ev.EventTime = "?"
	if _, err := (&Filter{From: at}).Match(&ev); err == nil {
		t.Error("a time that can't be read passed")
	}
}

// A listing asks the service only for names that the prefixes may select.
func TestFilterPrefix(t *testing.T) {
	for _, c := range []struct {
		prefixes          []string
		container, prefix string
		some              bool
	}{
		{nil, "photos", "", true},
		{[]string{"photos/2026/01"}, "photos", "2026/01", true},
		{[]string{"photos/2026/01"}, "photo", "", false},
		{[]string{"photos/2026/01"}, "photos2", "", false},
		{[]string{"photos/2026/01", "photos/2025/"}, "photos", "202", true},
		{[]string{"photos/a", "photos/b"}, "photos", "", true},
		{[]string{"photos/a", "pho"}, "photos", "", true},
		{[]string{"photos/a", "other/b"}, "photos", "a", true},
		{[]string{"photos/"}, "photos", "", true},
		{[]string{"photos/ü", "photos/ö"}, "photos", "", true}, // the first byte of both is half a character
	} {
		f := Filter{Prefixes: c.prefixes}
		prefix, some := f.Prefix(c.container)
		if prefix != c.prefix || some != c.some || f.Selects(c.container) != c.some {
			t.Errorf("%q leaves %q of %s, %t", c.prefixes, prefix, c.container, some)
		}
	}
}
