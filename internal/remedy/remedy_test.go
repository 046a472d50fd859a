package remedy

import (
	"errors"
	"fmt"
	"io"
	"testing"
)

// A remedy is part of the text however often the error is wrapped, and Split finds it there.
func TestSplit(t *testing.T) {
	err := fmt.Errorf("reading x: %w", With(fmt.Errorf("opening y: %w", io.EOF), "plug it in"))
	if err.Error() != "reading x: opening y: EOF: plug it in" || !errors.Is(err, io.EOF) {
		t.Errorf("%v", err)
	}
	if text, do := Split(err); text != "reading x: opening y: EOF" || do != "plug it in" {
		t.Errorf("%q, %q", text, do)
	}
	if text, do := Split(With(err, "and again")); text != "reading x: opening y: EOF" || do != "plug it in" {
		t.Errorf("a second remedy: %q, %q", text, do)
	}
	if text, do := Split(With(io.EOF, "")); text != "EOF" || do != "" {
		t.Errorf("no remedy: %q, %q", text, do)
	}
	if text := With(errors.New("no such thing."), "make it").Error(); text != "no such thing: make it" {
		t.Errorf("the end of a sentence: %q", text)
	}
	if With(nil, "nothing") != nil {
		t.Error("a remedy without an error is an error")
	}
}
