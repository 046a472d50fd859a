package main

import "os"

// watchedFile is a settings file that may change, or be replaced: Kubernetes swaps a symlink above a mounted ConfigMap.
// It looks at inode, time and size, since not every file system reports changes.
type watchedFile struct {
	path       string
	read, next os.FileInfo // as it was read, and as it was at the last look; nil: it was not there
}

// watchFile returns a file that was just read.
func watchFile(path string) *watchedFile {
	f := &watchedFile{path: path}
	f.Read()
	return f
}

// Read takes note of a file that is read now.
func (f *watchedFile) Read() {
	f.read, _ = os.Stat(f.path)
	f.next = f.read
}

// Changed reports whether the file is another one than was read, and has been for two looks: one that is being written
// is not whole.
func (f *watchedFile) Changed() bool {
	now, err := os.Stat(f.path)
	if err != nil {
		return false // it is being replaced, or gone: the bridges run on
	}
	still := same(f.next, now)
	f.next = now
	return still && !same(f.read, now)
}

func same(a, b os.FileInfo) bool {
	return a != nil && os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}
