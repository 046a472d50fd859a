package account

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"blobfeed/internal/testing/feedsim"
)

// Files is a container in memory that a simulated feed is written into, and that Server serves. It is safe for
// concurrent use.
type Files struct {
	same Properties // of all files that are not described

	mu        sync.RWMutex
	files     map[string][]byte
	described map[string]Properties
	names     []string // sorted; nil if they have changed
}

// Properties are what the service says of a file beside its bytes.
type Properties struct {
	ETag, Created, Modified string
	Blocks                  string // committed ones of an append blob, if the answer has their number
	Document                bool   // a block blob; else an append blob
}

var _ feedsim.Sink = (*Files)(nil)

// NewFiles returns an empty container.
func NewFiles() *Files {
	now := time.Now().UTC().Format(http.TimeFormat)
	return &Files{files: map[string][]byte{}, described: map[string]Properties{},
		same: Properties{ETag: "0x8D9000000000000", Created: now, Modified: now}}
}

// All returns the bytes of all files by name.
func (f *Files) All() map[string][]byte {
	f.mu.RLock()
	defer f.mu.RUnlock()
	return maps.Clone(f.files)
}

// Describe sets the properties of a file.
func (f *Files) Describe(name string, p Properties) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.described[name] = p
}

// properties returns those of a file. The caller holds the lock.
func (f *Files) properties(name string) *Properties {
	if p, ok := f.described[name]; ok {
		return &p
	}
	return &f.same
}

// listed returns the properties as a listing has them.
func (p *Properties) listed() string {
	return "<Creation-Time>" + p.Created + "</Creation-Time><Last-Modified>" + p.Modified + "</Last-Modified><Etag>" +
		p.ETag + "</Etag><Content-Type>application/octet-stream</Content-Type><BlobType>" + p.kind() + "</BlobType>"
}

func (p *Properties) kind() string {
	if p.Document {
		return "BlockBlob"
	}
	return "AppendBlob"
}

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

// list appends one page, or a part of it if maxresults says so.
func (f *Files) list(b []byte, q url.Values) (page []byte, next string) {
	prefix, delimiter, after := q.Get("prefix"), q.Get("delimiter"), strings.TrimPrefix(q.Get("marker"), marker)
	size := number(q, "maxresults", 5000)
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.names == nil {
		f.names = slices.Sorted(maps.Keys(f.files))
	}
	same := f.same.listed()
	var prefixes []byte
	last := ""
	b = append(b, "<Blobs>"...)
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
		properties := same
		if p := f.properties(name); p != &f.same {
			properties = p.listed()
		}
		b = fmt.Appendf(b, "<Blob><Name>%s</Name><Properties>%s<Content-Length>%d</Content-Length></Properties></Blob>",
			line, properties, len(f.files[name]))
	}
	return append(append(b, prefixes...), "</Blobs>"...), next
}

// read answers with a range of a file, with all of it, or, without a name, with the properties of the container. It
// writes the bytes at once: the SDK for JavaScript takes the first ones that come for all of a manifest.
func (f *Files) read(w http.ResponseWriter, r *http.Request, name string) {
	f.mu.RLock()
	data, ok := f.files[name]
	p := f.properties(name)
	f.mu.RUnlock()
	if !ok && name != "" {
		fail(w, http.StatusNotFound, "BlobNotFound")
		return
	}
	status, from, to := http.StatusOK, 0, len(data)-1
	h := w.Header()
	if asked := cmp.Or(r.Header.Get("x-ms-range"), r.Header.Get("Range")); asked != "" {
		n, _ := fmt.Sscanf(asked, "bytes=%d-%d", &from, &to) // the end may be missing
		if n == 0 || from >= len(data) {
			fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
			return
		}
		status, to = http.StatusPartialContent, min(to, len(data)-1)
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)))
	}
	h.Set("ETag", `"`+p.ETag+`"`)
	h.Set("Last-Modified", p.Modified)
	if name != "" {
		h.Set("x-ms-creation-time", p.Created)
		h.Set("x-ms-blob-type", p.kind())
		if p.Blocks != "" {
			h.Set("x-ms-blob-committed-block-count", p.Blocks)
		}
		h.Set("x-ms-server-encrypted", "true")
		h.Set("Content-Type", "application/octet-stream")
	}
	h.Set("Content-Length", strconv.Itoa(to-from+1))
	w.WriteHeader(status)
	_, _ = w.Write(data[from : to+1]) // not to HEAD
}
