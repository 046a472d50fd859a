package logging

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// Every key in a call of a logger is a literal in snake case, and every message begins in lower case: what is searched
// for must stay.
func TestKeys(t *testing.T) {
	snake := regexp.MustCompile(`^[a-z][a-z_]*$`)
	calls := 0
	err := fs.WalkDir(os.DirFS("../.."), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), "../../"+name, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			call, ok := n.(*ast.CallExpr)
			if !ok || !logs(call) {
				return true
			}
			calls++
			for i, arg := range call.Args {
				if i > 0 && i%2 == 0 {
					continue // a value
				}
				lit, ok := arg.(*ast.BasicLit)
				if !ok {
					t.Errorf("%s: argument %d of a log call is no literal", name, i)
					continue
				}
				text, _ := strconv.Unquote(lit.Value)
				if i == 0 && (text == "" || strings.ToLower(text[:1]) != text[:1]) ||
					i > 0 && !snake.MatchString(text) {
					t.Errorf("%s: %s", name, lit.Value)
				}
			}
			return true
		})
		return nil
	})
	if err != nil || calls < 10 {
		t.Errorf("%d calls, %v", calls, err)
	}
}

// logs reports whether a call is one of a logger: x.log.Info, b.Log.Warn, log.Error.
func logs(call *ast.CallExpr) bool {
	f, ok := call.Fun.(*ast.SelectorExpr)
	if !ok || !slices.Contains([]string{"Debug", "Info", "Warn", "Error"}, f.Sel.Name) {
		return false
	}
	switch x := f.X.(type) {
	case *ast.Ident:
		return strings.EqualFold(x.Name, "log")
	case *ast.SelectorExpr:
		return strings.EqualFold(x.Sel.Name, "log")
	}
	return false
}
