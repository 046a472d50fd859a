// Package realfeed unpacks the recorded feeds of real accounts, for tests.
package realfeed

import (
	"archive/tar"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"blobfeed/internal/testing/feedsim/account"
)

// Account is the recorded feed of a real account.
type Account struct {
	Name      string
	Events    int    // in the log
	Delivered int    // that a bridge can deliver: behind an open segment nothing is
	Changes   int    // of Delivered, those that change a blob
	Twice     int    // of Delivered, second copies of an event in the log
	Waits     string // the segment that is still open although later ones exist; "" is none
}

// Accounts are all of them.
var Accounts = []Account{
	{"seanchangefeedstage", 1608, 1608, 1595, 1, ""},
	{"emilydevtest", 4379, 4059, 3304, 0, "2020/08/10/2000"},
	{"49zxscnapby3pev38a", 1620, 1620, 1080, 0, ""},
	{"emilyeuap", 136, 136, 123, 0, ""},
	{"jeffishstorage", 4, 4, 4, 0, ""},
}

// End is later than every recording.
var End = time.Date(2030, 1, 1, 0, 0, 0, 0, time.UTC)

// Unpack returns a directory with the feed. Root leads to the root of the source.
func (a *Account) Unpack(t testing.TB, root string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range unpack(t, root, a.Name) {
		file := filepath.Join(dir, filepath.FromSlash(name))
		err := errors.Join(os.MkdirAll(filepath.Dir(file), 0o755), os.WriteFile(file, text, 0o644))
		if err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// At returns the container as the service had it at a time, with the recorded ETags, dates and block counts. What was
// written later is not there yet. Of a blob that was rewritten or has grown, it has the recorded version of that time.
func (a *Account) At(t testing.TB, root string, at time.Time) *account.Files {
	t.Helper()
	var recorded map[string]map[string]struct{ ETag, Ct, Lm, Bc string }
	text, err := os.ReadFile(filepath.Join(root, corpus, "properties.json"))
	if err := errors.Join(err, json.Unmarshal(text, &recorded)); err != nil {
		t.Fatal(err)
	}
	blobs, former := unpack(t, root, a.Name), map[string]time.Time{}
	for versioned, text := range unpack(t, root, a.Name+".versions") {
		name, stamp, _ := strings.Cut(versioned, "@")
		modified, err := time.Parse("20060102T150405Z", stamp)
		if err != nil {
			t.Fatal(err)
		}
		last, _ := time.Parse(http.TimeFormat, recorded[a.Name][name].Lm)
		if at.Before(last) && !at.Before(modified) && modified.After(former[name]) {
			blobs[name], former[name] = text, modified
		}
	}
	files := account.NewFiles()
	for name, text := range blobs {
		p := recorded[a.Name][name]
		if created, err := time.Parse(http.TimeFormat, p.Ct); err == nil && created.After(at) {
			continue
		}
		if err := files.Put(t.Context(), name, text); err != nil {
			t.Fatal(err)
		}
		if p.ETag == "" { // segments.json was made up
			continue
		}
		properties := account.Properties{
			ETag: p.ETag, Created: p.Ct, Modified: p.Lm, Blocks: p.Bc, Document: strings.HasSuffix(name, ".json"),
		}
		if modified := former[name]; !modified.IsZero() { // with an ETag and a block count that were not recorded
			properties.ETag, properties.Blocks = "0x"+modified.Format("20060102T150405"), ""
			properties.Modified = modified.Format(http.TimeFormat)
		}
		files.Describe(name, properties)
	}
	return files
}

const corpus = "testdata/real-accounts"

// unpack returns the blobs of an archive by name, none if there is no such archive.
func unpack(t testing.TB, root, archive string) map[string][]byte {
	t.Helper()
	blobs := map[string][]byte{}
	f, err := os.Open(filepath.Join(root, corpus, archive+".tar.gz"))
	if errors.Is(err, fs.ErrNotExist) && strings.HasSuffix(archive, ".versions") {
		return blobs
	}
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
			return blobs
		}
		if err == nil && h.Typeflag == tar.TypeReg {
			blobs[path.Clean(h.Name)], err = io.ReadAll(r)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}
