// Package internal holds the plumbing. This file holds the rule of the whole module: which package may import which.
package internal

import (
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "blobfeed/"

// imports is the architecture: what of this module each package may import. A package that is missing here may import
// nothing of it. Tests may import what they like.
var imports = map[string][]string{
	// An event flows down this list.
	"source/ocf":           nil,
	"source":               {"source/ocf", "internal/crash", "internal/plain"},
	"source/dir":           {"source", "internal/plain"},
	"source/inventory":     {"internal/crash", "internal/pause"},
	"source/azure":         {"source", "source/azure/listing", "source/inventory", "internal/outbound", "internal/plain"},
	"source/azure/listing": {"source/inventory"},
	"envelope":             {"source", "source/ocf", "internal/plain"},
	"partitioner":          nil,
	"offsets": {"source", "source/inventory", "internal/crash", "internal/testing/mutation", "internal/pause",
		"internal/plain", "internal/topics"},
	"internal/testing/protocol": nil,
	"resolved":                  {"source", "envelope", "offsets", "internal/plain"},
	"internal/history":          {"source", "envelope", "offsets", "resolved", "internal/pause"},
	"bridge/pipeline": {"source", "source/inventory", "envelope", "partitioner", "internal/crash",
		"internal/plain", "internal/pause"},
	"internal/catalog": {"internal/pause", "envelope", "internal/plain", "internal/topics", "offsets", "source",
		"bridge/pipeline"},
	"internal/frozen": {"internal/plain", "offsets", "source"},
	"internal/suspects": {"envelope", "internal/topics", "internal/crash", "offsets", "partitioner", "source",
		"source/inventory"},
	"bridge": {"source", "source/inventory", "envelope", "partitioner", "offsets", "resolved", "bridge/pipeline",
		"internal/crash", "internal/history", "internal/testing/mutation", "internal/pause", "internal/plain",
		"internal/topics", "internal/catalog", "internal/frozen", "internal/suspects"},

	// These judge a topic or a bridge from outside, and the engine does not know them.
	"verify": {"source/ocf"},
	"internal/status": {"source", "envelope", "offsets", "internal/frozen", "internal/history", "internal/pause",
		"internal/plain", "internal/topics"},
	"internal/ops": {"source", "offsets", "bridge", "internal/crash", "internal/kafka", "internal/status",
		"internal/plain", "internal/history"},
	"internal/progress": {"bridge", "internal/config", "internal/plain", "internal/status"},
	"internal/find": {"source/ocf", "source", "envelope", "offsets", "bridge", "internal/status", "internal/history",
		"internal/topics"},
	"internal/dump": {"source/ocf", "source", "offsets", "internal/plain"},
	"internal/change": {"source", "source/inventory", "envelope", "offsets", "bridge", "internal/config",
		"internal/plain", "internal/setup", "internal/status", "internal/topics", "internal/history"},

	// Setup makes the parts of a bridge from settings. These work with them, each for one verb.
	"internal/setup": {"source/ocf", "source", "source/dir", "source/azure", "source/inventory", "envelope",
		"partitioner", "offsets", "bridge", "bridge/pipeline", "internal/config", "internal/kafka", "internal/status", "internal/plain",
		"internal/topics", "internal/history"},
	"internal/tail": {"source", "envelope", "partitioner", "bridge", "bridge/pipeline", "internal/config",
		"internal/pause", "internal/plain", "internal/setup", "internal/history"},
	"internal/demo": {"bridge", "internal/config", "internal/testing/feedsim", "internal/ops", "internal/plain",
		"internal/progress", "internal/setup", "verify/judge"},
	"verify/judge": {"source", "source/inventory", "envelope", "offsets", "resolved", "bridge", "verify",
		"internal/config", "internal/kafka", "internal/pause", "internal/plain", "internal/setup", "internal/status",
		"internal/topics", "internal/history", "internal/catalog"},

	"internal/check": {"source", "source/azure", "source/inventory", "envelope", "offsets", "bridge",
		"bridge/pipeline", "internal/kafka", "internal/outbound", "internal/plain", "internal/status",
		"internal/topics", "internal/history", "internal/catalog", "internal/pause"},

	// Plumbing knows no subject of the bridge.
	"internal/crash":                    {"internal/pause", "internal/plain", "internal/testing/mutation"},
	"internal/pause":                    nil,
	"internal/plain":                    nil,
	"internal/testing/mutation":         nil,
	"internal/testing/ceiling":          nil,
	"internal/outbound":                 {"internal/plain"},
	"internal/kafka":                    {"internal/outbound", "internal/plain"},
	"internal/testing/arrivals":         {"verify"},
	"internal/testing/fakebroker":       nil,
	"internal/testing/realfeed":         {"internal/testing/feedsim/account"},
	"internal/testing/feedsim":          nil,
	"internal/testing/feedsim/blobsink": {"internal/testing/feedsim"},
	"internal/testing/feedsim/account":  {"source/inventory", "internal/testing/feedsim"},
	"internal/config":                   {"internal/plain"},
	"internal/topics":                   {"internal/pause", "internal/plain"},

	"deploy": nil,
}

// Every import within the module is one of the table above.
func TestImportsFollowTheArchitecture(t *testing.T) {
	forTests := func(pkg string) bool { // those below examples are modules of their own
		return strings.HasPrefix(pkg, "integration") || strings.HasPrefix(pkg, "examples")
	}
	for pkg, imported := range importsOf(t, "..") {
		allowed, known := imports[pkg]
		free := strings.HasPrefix(pkg, "cmd/") || forTests(pkg) // they put everything together
		if !known && !free {
			t.Errorf("package %s is not in the table: add it with what it may import", pkg)
		}
		for _, other := range imported {
			switch {
			case forTests(other) && !forTests(pkg):
				t.Errorf("%s imports %s, which is for tests only: move what both need", pkg, other)
			case !free && !slices.Contains(allowed, other):
				t.Errorf("%s imports %s: move the code, or change the table and docs/project/architecture.md", pkg, other)
			}
		}
	}
}

// The table has no cycle, and every package in it exists.
func TestArchitectureHasNoCycles(t *testing.T) {
	const open, done = 1, 2
	state := map[string]int{}
	var visit func(pkg string, way []string)
	visit = func(pkg string, way []string) {
		if state[pkg] == open {
			t.Fatalf("a cycle: %s", strings.Join(append(way, pkg), " -> "))
		}
		if state[pkg] == done {
			return
		}
		state[pkg] = open
		for _, other := range imports[pkg] {
			visit(other, append(way, pkg))
		}
		state[pkg] = done
	}
	for pkg := range imports {
		if _, err := os.Stat(filepath.Join("..", pkg)); err != nil {
			t.Errorf("%s is in the table: %v", pkg, err)
		}
		visit(pkg, nil)
	}
}

// importsOf returns the packages of this module below root, with what of it they import, for every platform and tag.
func importsOf(t *testing.T, root string) map[string][]string {
	t.Helper()
	all := map[string][]string{}
	err := fs.WalkDir(os.DirFS(root), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if base := d.Name(); d.IsDir() && name != "." &&
			(base == "testdata" || strings.HasPrefix(base, ".") || name == "tools") {
			return fs.SkipDir
		}
		if d.IsDir() || !strings.HasSuffix(name, ".go") || strings.HasSuffix(name, "_test.go") {
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), filepath.Join(root, name), nil, parser.ImportsOnly)
		if err != nil {
			return err
		}
		pkg := path.Dir(name)
		list := all[pkg]
		for _, spec := range file.Imports {
			imported, err := strconv.Unquote(spec.Path.Value)
			if err != nil {
				return err
			}
			if own, ok := strings.CutPrefix(imported, module); ok && !slices.Contains(list, own) {
				list = append(list, own)
			}
		}
		all[pkg] = list
		return nil
	})
	if err != nil || len(all) < 20 {
		t.Fatalf("%d packages found: %v", len(all), err)
	}
	return all
}
