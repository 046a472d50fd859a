package dir

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

func store(t *testing.T, files ...string) (*Store, string) {
	t.Helper()
	root := t.TempDir()
	for _, f := range files {
		path := filepath.Join(root, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("0123456789"), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	s, err := New(root)
	if err != nil {
		t.Fatal(err)
	}
	return s, root
}

// Listings are in the order of whole names, as a blob service's: "a-b/" before "a/", though "a" is before "a-b".
func TestList(t *testing.T) {
	s, _ := store(t, "x/a/1", "x/a-b/2", "x/a.txt", "x/b/c/3", "y/4")
	for args, want := range map[[2]string]string{
		{"x/", "/"}:     "x/a-b/ x/a.txt x/a/ x/b/",
		{"x/", ""}:      "x/a-b/2 x/a.txt x/a/1 x/b/c/3",
		{"x/a", "/"}:    "x/a-b/ x/a.txt x/a/",
		{"x/b/c", ""}:   "x/b/c/3",
		{"", "/"}:       "x/ y/",
		{"nosuch/", ""}: "",
	} {
		var got []string
		for e, err := range s.List(t.Context(), args[0], args[1]) {
			if err != nil {
				t.Fatal(err)
			}
			if e.IsPrefix != strings.HasSuffix(e.Name, "/") || !e.IsPrefix && e.Size != 10 {
				t.Errorf("%+v", e)
			}
			got = append(got, e.Name)
		}
		if g := strings.Join(got, " "); g != want {
			t.Errorf("List(%q) = %s, want %s", args, g, want)
		}
	}
}

func TestReadAt(t *testing.T) {
	s, root := store(t, "log/b")
	if err := os.WriteFile(filepath.Join(root, "..", "outside"), []byte("secret"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name   string
		offset int64
		n      int
		want   string
		err    error
	}{
		{"log/b", 0, 4, "0123", nil},
		{"log/b", 8, 4, "89", nil},
		{"log/b", 10, 4, "", nil},
		{"log/b", 99, 4, "", nil},
		{"log/c", 0, 4, "", source.ErrNotFound},
	} {
		p := make([]byte, c.n)
		n, err := s.ReadAt(t.Context(), c.name, p, c.offset)
		if string(p[:n]) != c.want || !errors.Is(err, c.err) {
			t.Errorf("%+v: %q, %v", c, p[:n], err)
		}
	}
	if _, err := s.ReadAt(t.Context(), "../outside", make([]byte, 4), 0); err == nil {
		t.Error("a name led out of the directory")
	}
	if _, err := New(filepath.Join(root, "nosuch")); err == nil {
		t.Error("a missing directory was opened")
	}
}

// A wrong path is not a feed without events. The error says which path is right, or what to copy.
func TestDirectoryWithoutFeed(t *testing.T) {
	for _, tc := range []struct{ file, below, do string }{
		{"", "", "copy the container $blobchangefeed into it"},
		{"photo.jpg", "", "name the directory that has them"},
		{"$blobchangefeed/meta/segments.json", "", "use file://ROOT/$blobchangefeed"},
		{"meta/segments.json", "meta", "use file://ROOT"},
		{"idx/segments/x", "", ""},
		{"log/00/x", "", ""},
	} {
		var files []string
		if tc.file != "" {
			files = []string{tc.file}
		}
		_, root := store(t, files...)
		s, err := New(filepath.Join(root, tc.below))
		if err != nil {
			t.Fatal(err)
		}
		_, err = s.ReadAt(t.Context(), "meta/segments.json", make([]byte, 4), 0)
		want := source.ErrNoFeed
		if tc.do == "" {
			want = source.ErrNotFound
		}
		if _, do := plain.SplitRemedy(err); !errors.Is(err, want) ||
			!strings.HasPrefix(do, strings.Replace(tc.do, "ROOT", root, 1)) {
			t.Errorf("%q below %q: %v", tc.file, tc.below, err)
		}
	}
}

// A copy may have the watermark under the name that a document of the service gives it.
func TestOtherNameOfTheWatermark(t *testing.T) {
	s, _ := store(t, "meta/Segments.json")
	p := make([]byte, 4)
	if n, err := s.ReadAt(t.Context(), "meta/segments.json", p, 2); err != nil || string(p[:n]) != "2345" {
		t.Errorf("%q, %v", p[:n], err)
	}
	if _, err := s.ReadAt(t.Context(), "meta/others.json", p, 0); !errors.Is(err, source.ErrNotFound) {
		t.Error(err)
	}
}

// A directory that is replaced by a rename, or by a link that leads elsewhere, is read from then on. While there is
// none, that is an error, and no empty feed.
func TestDirectoryIsReplaced(t *testing.T) {
	s, root := store(t, "log/old")
	reads := func(name string) error {
		_, err := s.ReadAt(t.Context(), name, make([]byte, 4), 0)
		return err
	}
	lists := func() (names string, err error) {
		for e, problem := range s.List(t.Context(), "log/", "") {
			names, err = names+e.Name, problem
		}
		return names, err
	}
	if err := reads("log/old"); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(root, root+".old"); err != nil {
		t.Fatal(err)
	}
	for _, err := range []error{reads("log/old"), func() error { _, err := lists(); return err }()} {
		if err == nil {
			t.Error("the former directory is read")
		} else if text, do := plain.SplitRemedy(err); text != "opening the feed's directory: "+root+
			": no such file or directory" || do == "" || errors.Is(err, source.ErrNotFound) {
			t.Errorf("no directory: %q -> %q", text, do)
		}
	}
	_, other := store(t, "log/new")
	if err := os.Symlink(other, root); err != nil {
		t.Fatal(err)
	}
	if names, err := lists(); names != "log/new" || err != nil {
		t.Errorf("listed %q, %v", names, err)
	}
	if err := reads("log/new"); err != nil {
		t.Error(err)
	}
	if err := reads("log/old"); !errors.Is(err, source.ErrNotFound) {
		t.Errorf("what only the former one has: %v", err)
	}
}
