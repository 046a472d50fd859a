package plain

import (
	"fmt"
	"strings"
	"testing"
)

// Only the verdict that a line begins with has a colour: not other words, and not what others have named.
func TestColour(t *testing.T) {
	var b strings.Builder
	w := NewWriter(&b)
	w.Colour()
	for _, part := range []string{"ok       reach", " answers\nokay\nfailed", " list\n", "a\x1b[31m\nBROKEN       order\n",
		"degraded: lease 0\n", "is degraded\n", "not applicable: ok\n", "catching up"} {
		fmt.Fprint(w, part)
	}
	want := green + "ok" + reset + "       reach answers\nokay\n" + red + "failed" + reset + " list\na\\u001b[31m\n" +
		red + "BROKEN" + reset + "       order\n" + red + "degraded" + reset + ": lease 0\nis degraded\n" +
		"not applicable: ok\n" + yellow + "catching up" + reset
	if got := b.String(); got != want {
		t.Errorf("%q, want %q", got, want)
	}
}
