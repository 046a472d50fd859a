// Package notices has the licences of everything that a released program holds, which most of them require to be shipped
// with it.
package notices

import (
	"flag"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write THIRD_PARTY_NOTICES")

// What is shipped says what is in the programs, and nothing that the project keeps for tests only is in one of them.
func TestNotices(t *testing.T) {
	var fresh strings.Builder
	if err := write(&fresh); err != nil {
		t.Fatal(err)
	}
	shipped, err := os.ReadFile("../../THIRD_PARTY_NOTICES")
	if *update {
		err = os.WriteFile("../../THIRD_PARTY_NOTICES", []byte(fresh.String()), 0o644)
	}
	if err != nil {
		t.Fatal(err)
	}
	if string(shipped) != fresh.String() && !*update {
		t.Error("THIRD_PARTY_NOTICES is not what the programs hold: run make docs")
	}
	for _, module := range []string{
		"github.com/twmb/franz-go (LICENSE)", "the Go standard library and runtime (LICENSE)",
		"arrow-go/v18 (NOTICE.txt)",
	} {
		if !strings.Contains(fresh.String(), module) {
			t.Errorf("there is no %s", module)
		}
	}
}

// hamba/avro is archived upstream, with open advisories. It is an oracle of tests, and in no program for any
// platform.
func TestNoProgramHoldsTestsOnlyModules(t *testing.T) {
	mods, err := modules()
	if err != nil {
		t.Fatal(err)
	}
	for _, m := range mods {
		if strings.HasPrefix(m.path, "github.com/hamba/") {
			t.Errorf("the program holds %s: %v", m.path, m.packages)
		}
	}
	if len(mods) < 20 {
		t.Errorf("%d modules: the list is not that of the program", len(mods))
	}
}

// The platforms are those that are released.
func TestPlatforms(t *testing.T) {
	release, err := os.ReadFile("../../.goreleaser.yaml")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range []string{"goos: [linux, darwin, windows]", "goarch: [amd64, arm64]"} {
		if !strings.Contains(string(release), line) {
			t.Errorf("the releases are not for %s", line)
		}
	}
}

const header = `Third-party notices

The programs of this project hold code of the modules below, under the licences that follow their names.
Made by "make docs".
`

// write prints each licence once, under all that it is the licence of.
func write(w io.Writer) error {
	found, err := notices()
	if err != nil {
		return err
	}
	fmt.Fprint(w, header)
	var order []string
	of := map[string][]string{}
	for _, n := range found {
		if of[n.text] == nil {
			order = append(order, n.text)
		}
		of[n.text] = append(of[n.text], n.name)
	}
	for _, text := range order {
		names := strings.Join(of[text], "\n")
		fmt.Fprintf(w, "\n%s\n%s\n%s\n\n%s\n", strings.Repeat("=", 100), names, strings.Repeat("-", 100), text)
	}
	return nil
}

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
