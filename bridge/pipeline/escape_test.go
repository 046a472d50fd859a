package pipeline

import (
	"net/url"
	"testing"
)

// The names that escape returns as they are have nothing to escape.
func TestEscape(t *testing.T) {
	for c := range rune(0x180) {
		name := "a/" + string(c) + "/b:c"
		want := (&url.URL{Path: "/" + name}).EscapedPath()[1:]
		for _, n := range []string{name, name[:len(name)-2]} {
			if got := escape(n); got != want[:len(want)-(len(name)-len(n))] {
				t.Errorf("%q: got %q, want %q", n, got, want)
			}
		}
	}
}
