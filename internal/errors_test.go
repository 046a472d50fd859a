package internal

import (
	"errors"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"
)

var (
	row     = regexp.MustCompile("(?m)^\\| (`.*?) \\|")
	quoted  = regexp.MustCompile("`([^`]+)`")
	verb    = regexp.MustCompile(`%[-+#0-9.]*[a-zA-Z]`)
	notCode = regexp.MustCompile(`[^A-Z_]`)
)

// Every message in docs/errors.md is one that the program prints, or a code of the brokers.
func TestErrorsExist(t *testing.T) {
	page, err := os.ReadFile("../docs/errors.md")
	if err != nil {
		t.Fatal(err)
	}
	texts := strings.Join(literals(t), "\n")
	found := 0
	for _, r := range row.FindAllStringSubmatch(string(page), -1) {
		for _, m := range quoted.FindAllStringSubmatch(r[1], -1) {
			found++
			if !notCode.MatchString(m[1]) {
				if !codes()[m[1]] {
					t.Errorf("the brokers have no error %s", m[1])
				}
				continue
			}
			pattern := strings.ReplaceAll(regexp.QuoteMeta(strings.Trim(m[1], "… ")), "…", ".*")
			if !regexp.MustCompile(pattern).MatchString(texts) {
				t.Errorf("no error says %q", m[1])
			}
		}
	}
	if found < 30 {
		t.Errorf("found %d messages", found)
	}
}

// literals returns the strings in the code, those that are added together as one, with … in place of formatted values.
func literals(t *testing.T) (all []string) {
	t.Helper()
	err := filepath.WalkDir("..", func(file string, d fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(file, ".go") || strings.HasSuffix(file, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.SkipObjectResolution)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			e, ok := n.(ast.Expr)
			if !ok {
				return true
			}
			s, ok := sum(e)
			if ok {
				all = append(all, verb.ReplaceAllString(s, "…"))
			}
			return !ok
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// sum returns the value of a string literal, or of a sum that begins with one, with … in place of other parts.
func sum(e ast.Expr) (string, bool) {
	switch e := e.(type) {
	case *ast.BasicLit:
		s, err := strconv.Unquote(e.Value)
		return s, err == nil && e.Kind == token.STRING
	case *ast.BinaryExpr:
		left, a := sum(e.X)
		right, b := sum(e.Y)
		if e.Op != token.ADD || !a && !b {
			return "", false
		}
		if !a {
			left = "…"
		}
		if !b {
			right = "…"
		}
		return left + right, true
	}
	return "", false
}

// codes are the errors of Kafka's protocol.
func codes() map[string]bool {
	all := map[string]bool{}
	for code := range int16(200) {
		var e *kerr.Error
		if errors.As(kerr.ErrorForCode(code), &e) {
			all[e.Message] = true
		}
	}
	return all
}
