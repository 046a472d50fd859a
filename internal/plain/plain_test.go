package plain

import (
	"encoding/json"
	"strings"
	"testing"
	"unicode/utf8"
)

func TestClip(t *testing.T) {
	if short := strings.Repeat("x", MaxText); Clip(short) != short {
		t.Error("a short text is cut")
	}
	for _, long := range []string{strings.Repeat("x", 50<<20), strings.Repeat("ä", MaxText), "x" + strings.Repeat("€",
		MaxText)} {
		got := Clip(long)
		if len(got) > MaxText+40 || !utf8.ValidString(got) || !strings.HasSuffix(got, "bytes more)") ||
			!strings.HasPrefix(got, long[:MaxText-3]) {
			t.Errorf("%d bytes became %d: …%s", len(long), len(got), got[len(got)-40:])
		}
	}
}

func TestLine(t *testing.T) {
	for in, want := range map[string]string{
		"photos/ä €.jpg": "photos/ä €.jpg", "\x1b[2J": `\u001b[2J`, "a\nb\tc\r": `a\u000ab\u0009c\u000d`,
		"\x7f\u009b31m": `\u007f\u009b31m`,
		"\u202egpj.exe": `\u202egpj.exe`, "\xff\x9b": `\xff\x9b`, "\ufffd": "\ufffd",
	} {
		if got := Line(in); got != want {
			t.Errorf("%q: %q, want %q", in, got, want)
		}
	}
}

// What a writer gets may be cut anywhere, and JSON stays the same document.
func TestWriter(t *testing.T) {
	const name = "a\x1b[31m\x7f\u009bä€\U0001f600\u202e"
	doc, err := json.Marshal(map[string]string{"name": name, "text": "x\ny"})
	if err != nil {
		t.Fatal(err)
	}
	for _, in := range []string{"plain\n\ttext\n", string(doc) + "\n", name + "\n", "\x1b]0;title\x07", "\xff\x9b0m",
		"torn \xe2\x82"} {
		var once, bytewise strings.Builder
		w := NewWriter(&once)
		if n, err := w.Write([]byte(in)); n != len(in) || err != nil {
			t.Errorf("%q: %d, %v", in, n, err)
		}
		_ = w.Flush()
		w = NewWriter(&bytewise)
		for i := range len(in) {
			_, _ = w.Write([]byte(in[i : i+1]))
		}
		_ = w.Flush()
		if once.String() != bytewise.String() || strings.ContainsAny(once.String(), "\x1b\x07\x7f\u009b\u202e") ||
			!utf8.ValidString(once.String()) {
			t.Errorf("%q: %q and %q", in, once.String(), bytewise.String())
		}
		var same map[string]string
		if strings.HasPrefix(in, "{") && (json.Unmarshal([]byte(once.String()), &same) != nil || same["name"] != name) {
			t.Errorf("%q: %q", in, once.String())
		}
	}
}
