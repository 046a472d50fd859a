package main

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// platforms are those of .goreleaser.yaml: each may need other packages.
var platforms = []string{"linux/amd64", "linux/arm64", "darwin/amd64", "darwin/arm64", "windows/amd64", "windows/arm64"}

// notice is a licence, and what it is the licence of. It names no version: the SBOM does, and licences seldom change
// with it.
type notice struct{ name, text string }

// module is one that the program holds packages of.
type module struct {
	path, dir string
	packages  map[string]bool // their directories
}

var licences = regexp.MustCompile(`(?i)^(licen[cs]e|copying|notice|patents)([.-].*)?$`)

// notices returns those of the modules, in order, and of Go itself.
func notices() (all []notice, err error) {
	mods, err := modules()
	if err != nil {
		return nil, err
	}
	for _, m := range mods {
		dirs := map[string]bool{} // a package may have a licence of its own, or be in a folder that has
		for dir := range m.packages {
			for ; len(dir) >= len(m.dir); dir = filepath.Dir(dir) {
				dirs[dir] = true
			}
		}
		count := len(all)
		for _, dir := range slices.Sorted(maps.Keys(dirs)) {
			if all, err = add(all, m, dir); err != nil {
				return nil, err
			}
		}
		if len(all) == count {
			return nil, fmt.Errorf("module %s has no licence: see whether it may be shipped", m.path)
		}
	}
	root, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return nil, fmt.Errorf("asking for Go's own folder: %w", err)
	}
	dir := strings.TrimSpace(string(root))
	return add(all, &module{path: "the Go standard library and runtime", dir: dir}, dir)
}

// add reads the licences in a folder of a module.
func add(all []notice, m *module, dir string) ([]notice, error) {
	files, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", dir, err)
	}
	for _, file := range files {
		if file.IsDir() || !licences.MatchString(file.Name()) || strings.HasSuffix(file.Name(), ".go") {
			continue
		}
		text, err := os.ReadFile(filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading a licence of %s: %w", m.path, err)
		}
		rel, err := filepath.Rel(m.dir, filepath.Join(dir, file.Name()))
		if err != nil {
			return nil, fmt.Errorf("reading a licence of %s: %w", m.path, err)
		}
		name := m.path + " (" + filepath.ToSlash(rel) + ")"
		all = append(all, notice{name, strings.TrimSpace(strings.ReplaceAll(string(text), "\r\n", "\n"))})
	}
	return all, nil
}

// modules returns those that the program holds on any platform, in order.
func modules() ([]*module, error) {
	byPath := map[string]*module{}
	for _, platform := range platforms {
		goos, goarch, _ := strings.Cut(platform, "/")
		const fields = "{{with .Module}}{{if not .Main}}{{.Path}}\t{{.Dir}}\t{{$.Dir}}{{end}}{{end}}"
		cmd := exec.Command("go", "list", "-deps", "-f", fields, "blobfeed/cmd/bridge")
		cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+goos, "GOARCH="+goarch)
		cmd.Stderr = os.Stderr
		out, err := cmd.Output()
		if err != nil {
			return nil, fmt.Errorf("listing the packages for %s: %w", platform, err)
		}
		for line := range strings.Lines(string(out)) {
			f := strings.Split(strings.TrimSpace(line), "\t")
			if len(f) != 3 {
				continue // of the standard library, or our own
			}
			m := byPath[f[0]]
			if m == nil {
				m = &module{path: f[0], dir: f[1], packages: map[string]bool{}}
				byPath[f[0]] = m
			}
			m.packages[f[2]] = true
		}
	}
	var all []*module
	for _, path := range slices.Sorted(maps.Keys(byPath)) {
		all = append(all, byPath[path])
	}
	return all, nil
}
