package deploy

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The threat model has a row for each neighbour, and each test and file that a row names exists.
func TestThreatModel(t *testing.T) {
	model := read(t, "../docs/security.md")
	_, model, _ = strings.Cut(model, "## Threat model")
	model, _, _ = strings.Cut(model, "\n## ")
	for _, neighbour := range []string{"storage service", "proxy", "registry", "broker", "other users of the cluster",
		"clients of the port", "writers of settings files"} {
		if !regexp.MustCompile(`(?m)^\| ` + neighbour + `[,| ]`).MatchString(model) {
			t.Errorf("there is no row for %s", neighbour)
		}
	}
	quoted := regexp.MustCompile("`([^`]+)`")
	named := 0
	for row := range strings.Lines(model) {
		cells := strings.Split(row, "|")
		if len(cells) < 6 || strings.Contains(row, "---") {
			continue
		}
		folders, tests := []string{"."}, []string{}
		for _, q := range quoted.FindAllStringSubmatch(cells[4], -1) {
			if info, err := os.Stat(filepath.Join("..", q[1])); err == nil && info.IsDir() {
				folders = append(folders, filepath.Join("..", q[1]))
			} else if err != nil { // else it is a page
				tests = append(tests, q[1])
			}
		}
		for _, name := range tests {
			if named++; !exists(t, name, folders) {
				t.Errorf("%s is not below any of %q", name, folders)
			}
		}
	}
	if named < 20 {
		t.Errorf("found %d tests", named)
	}
}

// exists reports whether a folder holds a file of that name, or a test.
func exists(t *testing.T, name string, folders []string) (found bool) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
			if err == nil && strings.HasSuffix(path, "_test.go") {
				found = found || filepath.Base(path) == name || strings.Contains(read(t, path), "\nfunc "+name+"(")
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	return found
}
