//go:build unix

package dir

import (
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"
)

// A FIFO, whose opening waits, and a device, which never ends, are refused, also behind a link.
func TestSpecialFiles(t *testing.T) {
	root := t.TempDir()
	if err := syscall.Mkfifo(filepath.Join(root, "00000.avro"), 0o600); err != nil {
		t.Fatal(err)
	}
	l, err := syscall.Socket(syscall.AF_UNIX, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Close(l)
	if err := os.Mkdir(filepath.Join(root, "a"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Bind(l, &syscall.SockaddrUnix{Name: filepath.Join(root, "a/socket")}); err != nil {
		t.Fatal(err)
	}
	if err := os.Mkdir(filepath.Join(root, "b"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../00000.avro", filepath.Join(root, "b/link")); err != nil {
		t.Fatal(err)
	}
	s, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for _, name := range []string{"00000.avro", "a/socket", "b/link", "a"} {
			if n, err := s.ReadAt(t.Context(), name, make([]byte, 10), 0); err == nil || !strings.Contains(err.Error(),
				"not a regular file") {
				t.Errorf("%s: %d bytes, %v", name, n, err)
			}
		}
		for _, prefix := range []string{"0", "a/", "b/"} {
			failed := false
			for e, err := range s.List(t.Context(), prefix, "") {
				if failed = err != nil; failed && !strings.Contains(err.Error(), "not a regular file") {
					t.Errorf("%s: %+v, %v", prefix, e, err)
				}
			}
			if !failed {
				t.Errorf("%s is listed", prefix)
			}
		}
	}()
	select {
	case <-ended:
	case <-time.After(10 * time.Second):
		t.Fatal("it waits for a FIFO")
	}
}
