package config

import (
	"strings"
	"testing"
)

// A filter that can match nothing is a mistake, which would show in what is missing.
func TestFiltersThatMatchNothing(t *testing.T) {
	for setting, want := range map[string]string{
		"CONTAINERS=photos/2026":           "use BRIDGE_PREFIXES for a folder",
		"CONTAINERS=!Photos":               "in lower case",
		"CONTAINERS=photos,!photos":        "photos is both selected and left out",
		"PREFIXES=/photos":                 "no path begins with a slash",
		"PREFIXES=photos/*":                "write photos/",
		"SUFFIXES=!*.jpg":                  "write .jpg",
		"PREFIXES=photos/,!photos/a*b":     "",
		"EVENT_TYPES=created":              "did you mean BlobCreated?",
		"EVENT_TYPES=BlobInventoryChanged": "", // perhaps a new one
		"CONTAINERS=$web,photos":           "",
	} {
		t.Run(setting, func(t *testing.T) {
			t.Setenv("BRIDGE_SOURCE_URL", "file:///feed")
			name, value, _ := strings.Cut(setting, "=")
			t.Setenv("BRIDGE_"+name, value)
			_, err := Environ().Load(false)
			if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
				t.Errorf("%v, want %q", err, want)
			}
		})
	}
}
