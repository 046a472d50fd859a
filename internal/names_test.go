package internal

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"blobfeed/internal/config"
)

var variable = regexp.MustCompile(`BRIDGE_[A-Z0-9_]*[A-Z0-9]\b`)

// Errors, hints, help and comments name no setting that there is not. They have the names as they are, since most
// packages must not know the settings, and a text with a name in it reads better than one put together.
func TestSettingsAreNamedAsTheyAre(t *testing.T) {
	reference, err := os.ReadFile("../docs/configuration.md")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]bool{"BRIDGE_DEBUG": true} // for tests
	for _, name := range variable.FindAllString(string(reference), -1) {
		known[name] = true
	}
	for _, name := range config.SecretNames() {
		known[name+"_FILE"] = true
	}
	found := 0
	err = fs.WalkDir(os.DirFS(".."), ".", func(path string, _ fs.DirEntry, err error) error {
		own := strings.HasPrefix(path, "internal/config/") // it also has former names, and examples
		if err != nil || own || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(filepath.Join("..", path))
		for i, line := range strings.Split(string(text), "\n") {
			for _, name := range variable.FindAllString(line, -1) {
				if found++; !known[name] {
					t.Errorf("%s:%d: there is no setting %s", path, i+1, name)
				}
			}
		}
		return err
	})
	if err != nil || found < 100 {
		t.Errorf("%d names were found: %v", found, err)
	}
}

// What setup is made of does not know the settings: it returns errors with a type, and setup.Advised adds what users
// can do about them. Those that judge topics, brokers and states by what users have set name the settings themselves.
func TestEngineNamesNoSettings(t *testing.T) {
	judges := []string{"internal/setup", "internal/config", "internal/kafka", "internal/topics", "internal/catalog",
		"internal/frozen", "internal/status"}
	const stored = "offsets/frozen.go" // the names under which a state has settings
	below := []string{"internal/setup"}
	for i := 0; i < len(below); i++ {
		for _, pkg := range imports[below[i]] {
			if !slices.Contains(below, pkg) {
				below = append(below, pkg)
			}
		}
	}
	for _, pkg := range below {
		files, err := filepath.Glob(filepath.Join("..", pkg, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("%s: %v", pkg, err)
		}
		for _, name := range files {
			if strings.HasSuffix(name, "_test.go") || slices.Contains(judges, pkg) ||
				name == filepath.Join("..", stored) {
				continue
			}
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			for i, line := range strings.Split(string(text), "\n") {
				code, _, _ := strings.Cut(line, "//")
				if setting := variable.FindString(code); setting != "" {
					t.Errorf("%s:%d names %s: return an error with a type, and name the setting in setup.Advised", name,
						i+1, setting)
				}
			}
		}
	}
}
