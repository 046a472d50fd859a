package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A file that is written, or replaced as Kubernetes replaces a ConfigMap, has changed when it rests.
func TestFileChanges(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	put := func(name, text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, name)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(to, name string) {
		t.Helper()
		if err := os.Symlink(to, filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
	}
	put("..1/fleet.yaml", "a")
	put("..2/fleet.yaml", "a") // the same content is another file
	link("..1", "..data")
	link("..data/fleet.yaml", "fleet.yaml")
	f := watchFile(filepath.Join(dir, "fleet.yaml"))
	changed := func(want ...bool) {
		t.Helper()
		for i, w := range want {
			if got := f.Changed(); got != w {
				t.Errorf("look %d: %t", i, got)
			}
		}
	}
	changed(false, false)
	link("..2", "..new")
	if err := os.Rename(filepath.Join(dir, "..new"), filepath.Join(dir, "..data")); err != nil {
		t.Fatal(err)
	}
	changed(false, true, true)
	f.Read()
	changed(false, false)
	put("..2/fleet.yaml", "ab")
	changed(false)
	put("..2/fleet.yaml", "abc") // still being written
	changed(false, true)
	f.Read()
	if err := os.Remove(filepath.Join(dir, "fleet.yaml")); err != nil {
		t.Fatal(err)
	}
	changed(false, false)
	link("..1/fleet.yaml", "fleet.yaml")
	changed(false, true)
}
