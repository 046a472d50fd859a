package internal

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"
)

const widestLine = 120 // columns, a tab has 4

// A raw string cannot be broken, so lines with a backquote may be longer.
func TestLinesAreShort(t *testing.T) {
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		if err != nil {
			return err
		}
		for i, line := range bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n")) {
			n := utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t"))
			if n > widestLine && !bytes.ContainsRune(line, '`') {
				t.Errorf("%s:%d has %d columns: break the line", path, i+1, n)
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}
