package internal

import (
	"bytes"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"
)

// rooms are the packages whose files must be short, and must not know each other in a circle.
var rooms = []string{"bridge", "bridge/pipeline", "cmd/bridge", "verify", "verify/judge"}

const (
	longestFile = 300 // lines
	widestLine  = 120 // columns, a tab has 4
)

func TestFilesAreShort(t *testing.T) {
	for _, room := range rooms {
		for _, path := range sources(t, room, func(string) bool { return true }) {
			if n := len(linesOf(t, path)); n > longestFile {
				t.Errorf("%s has %d lines: split it by subject", path, n)
			}
			shortLines(t, path)
		}
	}
}

// The code of the other packages has short lines, too.
func TestLinesAreShort(t *testing.T) {
	err := fs.WalkDir(os.DirFS(".."), ".", func(path string, _ fs.DirEntry, err error) error {
		if strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go") {
			shortLines(t, filepath.Join("..", path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}

// shortLines reports lines that are too long, unless they have a raw string, which cannot be broken.
func shortLines(t *testing.T, path string) {
	t.Helper()
	for i, line := range linesOf(t, path) {
		n := utf8.RuneCount(line) + 3*bytes.Count(line, []byte("\t"))
		if n > widestLine && !bytes.ContainsRune(line, '`') {
			t.Errorf("%s:%d has %d columns: break the line", path, i+1, n)
		}
	}
}

func linesOf(t *testing.T, path string) [][]byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
}

func TestFilesKnowEachOtherOneWay(t *testing.T) {
	for _, room := range rooms {
		knows := references(t, sources(t, room, func(name string) bool { return !strings.HasSuffix(name, "_test.go") }))
		for changed := true; changed; { // leave out files that know no other, until only circles are left
			changed = false
			for file, others := range knows {
				maps.DeleteFunc(others, func(other string, _ string) bool { return knows[other] == nil })
				if len(others) == 0 {
					delete(knows, file)
					changed = true
				}
			}
		}
		for _, file := range slices.Sorted(maps.Keys(knows)) {
			t.Errorf("%s/%s is in a circle, or above one: it uses %v", room, file, knows[file])
		}
	}
}

// references returns for each file of a package the other files that it uses, each with a name from there.
func references(t *testing.T, paths []string) map[string]map[string]string {
	t.Helper()
	fset := token.NewFileSet()
	var files []*ast.File
	knows := map[string]map[string]string{}
	for _, path := range paths {
		file, err := parser.ParseFile(fset, path, nil, parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
		knows[filepath.Base(path)] = map[string]string{}
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}}
	c := types.Config{Importer: empty{}, Error: func(error) {}} // of what is imported nothing is known
	pkg, _ := c.Check("room", fset, files, info)
	for id, used := range info.Uses {
		_, imported := used.(*types.PkgName)
		local := used.Parent() != nil && used.Parent() != pkg.Scope() // fields and methods have no scope
		if used.Pkg() != pkg || imported || local {
			continue
		}
		from := filepath.Base(fset.Position(id.Pos()).Filename)
		if to := filepath.Base(fset.Position(used.Pos()).Filename); to != from {
			knows[from][to] = used.Name()
		}
	}
	return knows
}

// empty imports packages without what is in them.
type empty struct{}

func (empty) Import(path string) (*types.Package, error) {
	pkg := types.NewPackage(path, filepath.Base(path))
	pkg.MarkComplete()
	return pkg, nil
}

// sources returns the Go files of a package.
func sources(t *testing.T, room string, want func(name string) bool) (paths []string) {
	t.Helper()
	all, err := fs.Glob(os.DirFS(".."), room+"/*.go")
	if err != nil || len(all) == 0 {
		t.Fatal(fmt.Errorf("%s has no files: %v", room, err))
	}
	for _, path := range all {
		if want(path) {
			paths = append(paths, filepath.Join("..", path))
		}
	}
	return paths
}
