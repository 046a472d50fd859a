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
	"sync/atomic"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

// Store reads a directory. Files may grow while it does, and another directory may take its place. It is safe for
// concurrent use.
type Store struct {
	path string
	last atomic.Pointer[opened]
}

var _ source.Store = (*Store)(nil)

// opened is the directory that was at the path when it was opened.
type opened struct {
	*os.Root // names can't lead outside
	is       fs.FileInfo
}

// New opens a directory.
func New(dir string) (*Store, error) {
	s := &Store{path: dir}
	_, err := s.root()
	return s, err
}

// root returns the directory that is at the path now. An operator may replace it by renaming a copy that is complete.
func (s *Store) root() (*opened, error) {
	is, err := os.Stat(s.path)
	last := s.last.Load()
	gone := errors.Is(err, fs.ErrNotExist)
	if last != nil && !gone && (err != nil || os.SameFile(last.is, is)) {
		return last, nil
	}
	var root *os.Root
	if err == nil {
		root, err = os.OpenRoot(s.path)
	}
	if err == nil {
		is, err = root.Stat(".") // it may have been replaced since
	}
	if err != nil {
		err = permitted(s.path, fmt.Errorf("opening the feed's directory: %s: %w", s.path, reason(s.path, err)))
		return nil, plain.WithRemedy(err, "correct the path; in a container, mount the directory")
	}
	now := &opened{root, is}
	s.last.Store(now) // the collector closes the former one, when nobody reads it any more
	return now, nil
}

// reason returns what a call said of name, without Go's name of the call.
func reason(name string, err error) error {
	failed, is := errors.AsType[*fs.PathError](err)
	if is && path.Clean(failed.Path) != path.Clean(name) {
		return fmt.Errorf("%s: %w", failed.Path, failed.Err)
	}
	if is {
		return failed.Err
	}
	return err
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
		root, err := s.root()
		if err != nil {
			yield(source.Entry{}, err)
			return
		}
		dir, base := path.Split(prefix)
		s.list(ctx, root, dir, base, delimiter != "", func(e source.Entry, err error) bool {
			return yield(e, permitted(s.path, reason(dir, err)))
		})
	}
}

// list yields what is in dir, "" or with a slash at its end, and begins with base. It returns false when it is over.
func (s *Store) list(
	ctx context.Context, root *opened, dir, base string, fold bool, yield func(source.Entry, error) bool,
) bool {
	entries, err := fs.ReadDir(root.FS(), cmp.Or(strings.TrimSuffix(dir, "/"), "."))
	if errors.Is(err, fs.ErrNotExist) {
		return true // a prefix that nothing has
	}
	if err == nil {
		err = ctx.Err()
	}
	if err != nil {
		yield(source.Entry{}, err)
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
			if !s.list(ctx, root, full, "", false, yield) {
				return false
			}
		default:
			info, err := root.Stat(full) // of what a link leads to
			if errors.Is(err, fs.ErrNotExist) {
				continue // replaced meanwhile
			}
			if err == nil {
				err = regular(full, info)
			}
			if err != nil {
				yield(source.Entry{}, err)
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
func (s *Store) isFeed(root *opened) error {
	entries, err := fs.ReadDir(root.FS(), ".")
	if err != nil {
		return reason(".", err)
	}
	has := func(names ...string) bool {
		return slices.ContainsFunc(entries,
			func(e fs.DirEntry) bool { return e.IsDir() && slices.Contains(names, e.Name()) })
	}
	path, err := filepath.Abs(s.path)
	if err != nil {
		return err
	}
	err = fmt.Errorf("%w in %s", source.ErrNoFeed, s.path)
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
	root, err := s.root()
	if err != nil {
		return 0, err
	}
	info, err := root.Stat(name)
	if err == nil {
		err = regular(name, info)
	}
	var f *os.File
	if err == nil {
		f, err = root.OpenFile(name, os.O_RDONLY|nonblock, 0) // it may have been replaced since
	}
	if errors.Is(err, fs.ErrNotExist) {
		if err := s.isFeed(root); err != nil {
			return 0, err
		}
		return 0, source.ErrNotFound // the caller names the blob
	}
	if err != nil {
		return 0, permitted(s.path, reason(name, err))
	}
	defer f.Close()
	n, err := f.ReadAt(p, offset)
	if errors.Is(err, io.EOF) {
		err = nil
	}
	return n, err
}
