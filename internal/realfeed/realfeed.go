// Package realfeed unpacks the recorded feeds of real accounts, for tests.
package realfeed

import (
	"archive/tar"
	"compress/gzip"
	"errors"
	"io"
	"os"
	"path/filepath"
	"testing"
)

// Account is the recorded feed of a real account.
type Account struct {
	Name      string
	Events    int    // in the log
	Delivered int    // that a bridge can deliver: behind an open segment nothing is
	Twice     int    // of Delivered, second copies of an event in the log
	Waits     string // the segment that is still open although later ones exist; "" is none
}

// Accounts are all of them.
var Accounts = []Account{
	{"seanchangefeedstage", 1608, 1608, 1, ""},
	{"emilydevtest", 4379, 4059, 0, "2020/08/10/2000"},
	{"49zxscnapby3pev38a", 1620, 1620, 0, ""},
	{"emilyeuap", 136, 136, 0, ""},
	{"jeffishstorage", 4, 4, 0, ""},
}

// Unpack returns a directory with the feed. Root leads to the root of the source.
func (a *Account) Unpack(t testing.TB, root string) string {
	t.Helper()
	dir := t.TempDir()
	f, err := os.Open(filepath.Join(root, "testdata/real-accounts", a.Name+".tar.gz"))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	for r := tar.NewReader(z); ; {
		h, err := r.Next()
		if errors.Is(err, io.EOF) {
			return dir
		}
		if err == nil && h.Typeflag == tar.TypeReg {
			err = write(filepath.Join(dir, filepath.FromSlash(h.Name)), r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

func write(path string, r io.Reader) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	text, err := io.ReadAll(r)
	if err != nil {
		return err
	}
	return os.WriteFile(path, text, 0o644)
}
