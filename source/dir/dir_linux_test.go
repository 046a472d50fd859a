package dir

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"blobfeed/internal/plain"
)

// What the program may not read is named with the command that permits it, also below the root.
func TestWithoutPermission(t *testing.T) {
	s, root := store(t, "log/00/a.avro")
	closed := filepath.Join(root, "log", "00")
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	if user := os.Geteuid(); user == 0 { // root may read all: this thread is another user's
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		if err := syscall.Setfsuid(65534); err != nil {
			t.Fatal(err)
		}
		defer syscall.Setfsuid(user)
	}
	defer os.Chmod(closed, 0o755)
	listed := 0
	for prefix, want := range map[string]string{
		"log/00/": "permission denied", "log/": "log/00: permission denied", // the caller names the prefix
	} {
		for _, err := range s.List(t.Context(), prefix, "") {
			listed++
			text, do := plain.SplitRemedy(err)
			if text != want || !errors.Is(err, fs.ErrPermission) || !strings.Contains(do, "chmod -R a+rX "+root) {
				t.Errorf("%s: %s -> %s", prefix, text, do)
			}
		}
	}
	_, err := s.ReadAt(t.Context(), "log/00/a.avro", make([]byte, 1), 0)
	if text, do := plain.SplitRemedy(err); text != "permission denied" || !errors.Is(err, fs.ErrPermission) ||
		!strings.Contains(do, "chmod") {
		t.Errorf("reading: %s -> %s", text, do)
	}
	if listed != 2 {
		t.Errorf("%d answers", listed)
	}
}
