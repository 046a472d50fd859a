package bridge

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// That no failure commits what is half written rests on who calls whom: transactions begin in the writer, a change is
// written behind the looks of the coordinator, and other documents are committed by the loop, where no transaction is
// open. The methods of a type are in three files at most, so that each has its place.
func TestWhoCallsWhom(t *testing.T) {
	calls, methods := map[string][]string{}, map[string][]string{}
	names, err := filepath.Glob("*.go")
	must(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		must(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if f, ok := n.Fun.(*ast.SelectorExpr); ok {
					calls[nameOf(f.X)+"."+f.Sel.Name] = append(calls[nameOf(f.X)+"."+f.Sel.Name], name)
				}
			case *ast.FuncDecl:
				if of := receiver(n); of != "" && !slices.Contains(methods[of], name) {
					methods[of] = append(methods[of], name)
				}
			}
			return true
		})
	}
	for called, want := range map[string]string{
		"lease.Begin":        "writer.go",
		"tx.Commit":          "writer.go",
		"w.begin":            "change.go change.go writer.go", // the second one is a mutation
		"t.commitFailing":    "loop.go loop.go loop.go writer.go",
		"lease.Commit":       "loop.go loop.go loop.go", // of these: enters, holds, and a failure
		"lease.Discard":      "instance.go",
		"offsets.Acquire":    "tenure.go",
		"offsets.Fence":      "instance.go",
		"co.lookAtBeginning": "coordinator.go",
		"co.lookAfter":       "coordinator.go",
		"co.lookBetween":     "coordinator.go",
	} {
		if got := strings.Join(calls[called], " "); got != want {
			t.Errorf("%s is called in %s; want %s", called, got, want)
		}
	}
	if files := slices.Compact(calls["out.write"]); !slices.Equal(files, []string{"coordinator.go"}) {
		t.Errorf("changes are written in %v", files)
	}
	for _, of := range slices.Sorted(maps.Keys(methods)) {
		if len(methods[of]) > 3 {
			t.Errorf("the methods of %s are in %v", of, methods[of])
		}
	}
}

// nameOf returns the last name of what a method is called on.
func nameOf(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.Ident:
		return e.Name
	case *ast.SelectorExpr:
		return e.Sel.Name
	}
	return ""
}

func receiver(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return ""
	}
	of := f.Recv.List[0].Type
	if p, ok := of.(*ast.StarExpr); ok {
		of = p.X
	}
	return nameOf(of)
}
