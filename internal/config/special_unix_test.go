//go:build unix

package config

import (
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// A FIFO waits for its writer, a device may never end: neither may hold up a start or a reload.
func TestSpecialSettingsFile(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "bridge.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	for _, path := range []string{fifo, "/dev/zero", t.TempDir()} {
		set(t, map[string]string{"BRIDGE_CONFIG": path})
		if _, err := Environ().Load(false); err == nil || !strings.Contains(err.Error(), path+" is not a regular file") {
			t.Errorf("%s: %v", path, err)
		}
	}
}
