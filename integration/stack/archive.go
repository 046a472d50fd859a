package stack

import (
	"os"
	"path/filepath"
)

// classArchive returns Java's flags for the archive of loaded classes in the cache, which halves the time to start. If
// there is none yet and write is set, the process will write one, at the path returned, when it ends in order; Close
// moves it to the cache. Java ignores an archive that another version wrote.
func (s *Stack) classArchive(name string, write bool) (flags []string, path string) {
	cached := filepath.Join(s.cache, name+".jsa")
	if _, err := os.Stat(cached); err == nil {
		return []string{"-XX:SharedArchiveFile=" + cached}, ""
	}
	if !write {
		return nil, ""
	}
	path = filepath.Join(s.dir, name+".jsa")
	return []string{"-XX:ArchiveClassesAtExit=" + path}, path
}
