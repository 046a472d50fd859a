// Package dir is a source.Store over a local directory that is laid out like the container.
package dir

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

// Store reads a directory. Files may grow while it does. It is safe for concurrent use.
type Store struct{ root *os.Root }

var _ source.Store = (*Store)(nil)

// New opens a directory.
func New(dir string) (*Store, error) {
	root, err := os.OpenRoot(dir) // names can't lead outside
	if err != nil {
		err = permitted(dir, fmt.Errorf("opening the feed's directory: %w", err))
		return nil, plain.WithRemedy(err, "correct the path; in a container, mount the directory")
	}
	return &Store{root}, nil
}

// permitted adds what to do to an error that is of a missing permission.
func permitted(root string, err error) error {
	if !errors.Is(err, fs.ErrPermission) {
		return err
	}
	return plain.WithRemedy(err, "let the user that runs the bridge read the directory and all that is in it: "+
		"chmod -R a+rX "+plain.Shell(root))
}

// List implements source.Store.
func (s *Store) List(ctx context.Context, prefix, delimiter string) iter.Seq2[source.Entry, error] {
	return func(yield func(source.Entry, error) bool) {
		dir, base := path.Split(prefix)
		s.list(ctx, dir, base, delimiter != "", yield)
	}
}

// list yields what is in dir, "" or with a slash at its end, and begins with base. It returns false when it is over.
func (s *Store) list(ctx context.Context, dir, base string, fold bool, yield func(source.Entry, error) bool) bool {
	entries, err := fs.ReadDir(s.root.FS(), cmp.Or(strings.TrimSuffix(dir, "/"), "."))
	if errors.Is(err, fs.ErrNotExist) {
		return true // a prefix that nothing has
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		yield(source.Entry{}, permitted(s.root.Name(), err))
		return false
	}
	// A blob store sorts whole names, in which a directory counts with its slash.
	name := func(e fs.DirEntry) string {
		if e.IsDir() {
			return e.Name() + "/"
		}
		return e.Name()
	}
	slices.SortFunc(entries, func(a, b fs.DirEntry) int { return strings.Compare(name(a), name(b)) })
	for _, e := range entries {
		full := dir + name(e)
		switch {
		case !strings.HasPrefix(e.Name(), base):
		case e.IsDir() && fold:
			if !yield(source.Entry{Name: full, IsPrefix: true}, nil) {
				return false
			}
		case e.IsDir():
			if !s.list(ctx, full, "", false, yield) {
				return false
			}
		default:
			info, err := s.root.Stat(full) // of what a link leads to
			if errors.Is(err, fs.ErrNotExist) {
				continue // replaced meanwhile
			}
			if err == nil {
				err = regular(full, info)
			}
			if err != nil {
				yield(source.Entry{}, permitted(s.root.Name(), err))
				return false
			}
			if !yield(source.Entry{Name: full, Size: info.Size(), Modified: info.ModTime()}, nil) {
				return false
			}
		}
	}
	return true
}

// regular rejects everything but files: opening a FIFO waits for its writer, and a device may never end.
func regular(name string, info fs.FileInfo) error {
	if info.Mode().IsRegular() {
		return nil
	}
	return fmt.Errorf("%q is not a regular file (%s): remove it from the feed's directory", name, info.Mode().Type())
}

// isFeed returns an error if the directory holds nothing of a feed: a wrong path must not look like a feed without
// events.
func (s *Store) isFeed() error {
	entries, err := fs.ReadDir(s.root.FS(), ".")
	if err != nil {
		return err
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(entries,
			func(e fs.DirEntry) bool { return e.IsDir() && slices.Contains(names, e.Name()) })
	}
	dir := s.root.Name()
	path, err := filepath.Abs(dir)
	if err != nil {
		return err
	}
	err = fmt.Errorf("%w in %s", source.ErrNoFeed, dir)
	const container = "$blobchangefeed"
	switch {
	case has("idx", "log", "meta"):
		return nil
	case has(container):
		return plain.WithRemedy(err, "use file://"+filepath.Join(path, container))
	case len(entries) == 0:
		return plain.WithRemedy(fmt.Errorf("%w: it is empty", err), "copy the container "+container+" into it")
	case slices.Contains([]string{"idx", "log", "meta"}, filepath.Base(path)):
		return plain.WithRemedy(err, "use file://"+filepath.Dir(path))
	}
	return plain.WithRemedy(fmt.Errorf("%w: it has none of idx/, log/ and meta/", err),
		"name the directory that has them, a copy of the container "+container)
}

// otherNames are those under which a copy may have a blob, too. A document of the service writes the watermark's with a
// capital letter; every recorded account has it as the blob is named here.
var otherNames = map[string]string{"meta/segments.json": "meta/Segments.json"}

// ReadAt implements source.Store.
func (s *Store) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	n, err := s.readAt(ctx, name, p, offset)
	if other := otherNames[name]; other != "" && errors.Is(err, source.ErrNotFound) {
		return s.readAt(ctx, other, p, offset)
	}
	return n, err
}

func (s *Store) readAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	if err := ctx.Err(); err != nil {
		return 0, err
	}
	info, err := s.root.Stat(name)
	if err == nil {
		err = regular(name, info)
	}
	var f *os.File
	if err == nil {
		f, err = s.root.OpenFile(name, os.O_RDONLY|nonblock, 0) // it may have been replaced since
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.isFeed(); err != nil {
			return 0, err
		}
		return 0, source.ErrNotFound // the caller names the blob
	}
	if err != nil {
		return 0, permitted(s.root.Name(), err)
	}
	defer f.Close()
	n, err := f.ReadAt(p, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
