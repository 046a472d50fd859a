package account

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"

	"blobfeed/internal/feedsim"
)

// Files is a container in memory that a simulated feed is written into, and that Server serves. It is safe for
// concurrent use.
type Files struct {
	mu    sync.RWMutex
	files map[string][]byte
	names []string // sorted; nil if they have changed
}

var _ feedsim.Sink = (*Files)(nil)

// NewFiles returns an empty container.
func NewFiles() *Files { return &Files{files: map[string][]byte{}} }

// Put implements feedsim.Sink.
func (f *Files) Put(_ context.Context, name string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write(name, bytes.Clone(data))
	return nil
}

// Append implements feedsim.Sink.
func (f *Files) Append(_ context.Context, name string, data []byte) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.write(name, append(f.files[name], data...)) // a reader may hold the old slice, whose bytes stay
	return nil
}

func (f *Files) write(name string, data []byte) {
	if _, known := f.files[name]; !known {
		f.names = nil
	}
	f.files[name] = data
}

// Remove deletes what begins with prefix, as the feed's retention does.
func (f *Files) Remove(prefix string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	maps.DeleteFunc(f.files, func(name string, _ []byte) bool { return strings.HasPrefix(name, prefix) })
	f.names = nil
}

// list answers with one page, or several if maxresults says so.
func (f *Files) list(w http.ResponseWriter, q url.Values) {
	prefix, delimiter, after := q.Get("prefix"), q.Get("delimiter"), strings.TrimPrefix(q.Get("marker"), marker)
	size := number(q, "maxresults", 5000)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names == nil {
		f.names = slices.Sorted(maps.Keys(f.files))
	}
	var blobs, prefixes []byte
	next, last := "", ""
	first, _ := slices.BinarySearch(f.names, prefix)
	for _, name := range f.names[first:] {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			break
		}
		line := name
		if head, _, cut := strings.Cut(rest, delimiter); delimiter != "" && cut {
			line = prefix + head + delimiter
		}
		if line <= after || line == last {
			continue
		}
		if size == 0 {
			next = marker + last
			break
		}
		size--
		last = line
		if line != name {
			prefixes = fmt.Appendf(prefixes, "<BlobPrefix><Name>%s</Name></BlobPrefix>", line)
			continue
		}
		blobs = fmt.Appendf(blobs, "<Blob><Name>%s</Name><Properties><Content-Length>%d</Content-Length>"+
			"<Etag>0x1</Etag></Properties></Blob>", line, len(f.files[name]))
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = fmt.Fprintf(w, "<EnumerationResults><Blobs>%s%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>",
		blobs, prefixes, next)
}

// read answers with a range of a file.
func (f *Files) read(w http.ResponseWriter, r *http.Request, name string) {
	f.mu.RLock()
	data, ok := f.files[name]
	f.mu.RUnlock()
	var from, to int
	if !ok {
		fail(w, http.StatusNotFound, "BlobNotFound")
		return
	}
	if _, err := fmt.Sscanf(r.Header.Get("x-ms-range"), "bytes=%d-%d", &from, &to); err != nil || from >= len(data) {
		fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
		return
	}
	to = min(to, len(data)-1)
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)))
	w.Header().Set("Content-Length", strconv.Itoa(to-from+1))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = w.Write(data[from : to+1])
}
