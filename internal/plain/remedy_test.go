package plain

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

// A remedy is part of the text however often the error is wrapped, and SplitRemedy finds it there.
func TestSplitRemedy(t *testing.T) {
	err := fmt.Errorf("reading x: %w", WithRemedy(fmt.Errorf("opening y: %w", io.EOF), "plug it in"))
	if err.Error() != "reading x: opening y: EOF: plug it in" || !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	if text, do := SplitRemedy(err); text != "reading x: opening y: EOF" || do != "plug it in" {
		t.Errorf("%q, %q", text, do)
	}
	if text, do := SplitRemedy(WithRemedy(err, "and again")); text != "reading x: opening y: EOF" || do != "plug it in" {
		t.Errorf("a second remedy: %q, %q", text, do)
	}
	if text, do := SplitRemedy(WithRemedy(io.EOF, "")); text != "EOF" || do != "" {
		t.Errorf("no remedy: %q, %q", text, do)
	}
	if text := WithRemedy(errors.New("no such thing."), "make it").Error(); text != "no such thing: make it" {
		t.Errorf("the end of a sentence: %q", text)
	}
	if WithRemedy(nil, "nothing") != nil {
		t.Error("a remedy without an error is an error")
	}
}
