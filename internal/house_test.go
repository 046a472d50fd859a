package internal

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
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

// The tests of the program run side by side, with an environment each: a variable of the process has no effect there.
func TestProgramHasItsOwnEnvironment(t *testing.T) {
	files, err := filepath.Glob("../cmd/bridge/*_test.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	for _, name := range files {
		if text, err := os.ReadFile(name); err != nil || bytes.Contains(text, []byte("t.Setenv(")) {
			t.Errorf("%s: use setenv(t, …), %v", name, err)
		}
	}
}

// In a process with many bridges, a goroutine of one must not end the others: each starts with internal/crash, which
// recovers. What a library starts is its own.
func TestGoroutinesRecover(t *testing.T) {
	bare := regexp.MustCompile(`(?m)^.*(\bgo (func\b|[a-z]\w*(\.\w+)*\()|\.Go\(func|\.AfterFunc\([^\n]*, func).*$`)
	for _, dir := range []string{"bridge", "bridge/pipeline", "internal/history", "offsets", "source", "source/inventory", "source/azure"} {
		files, err := filepath.Glob(filepath.Join("..", dir, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", dir, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for _, line := range bare.FindAllString(string(text), -1) {
				if code := strings.TrimSpace(line); !strings.HasPrefix(code, "//") && !strings.Contains(code, "crash.") && !slices.Contains(harmless, code) {
					t.Errorf("%s: %s", name, code)
				}
			}
		}
	}
}

// harmless are goroutines that only end a wait.
var harmless = []string{
	"context.AfterFunc(w.hard, func() { t.Stop() })",
	"unhook := context.AfterFunc(soft, func() { stop(context.Cause(soft)) })",
	"stop := context.AfterFunc(inner, func() {",
	"go func() { ended <- s.view.Run(viewing, cfg.Client...) }()", // of a verb, which is a process of its own
}
