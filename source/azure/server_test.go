package azure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"blobfeed/source"
)

// blobs answers as the service does for a container with those blobs, its listings in pages of so many lines. The
// service may also send pages without a line, and says then, too, where the next one begins.
type blobs struct {
	content map[string]string
	page    int
	empty   bool // every second page has no line
}

func (b *blobs) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	if q.Get("comp") == "list" {
		b.list(w, q.Get("prefix"), q.Get("delimiter"), q.Get("marker"))
		return
	}
	text, ok := b.content[strings.TrimPrefix(r.URL.Path, "/acct/$blobchangefeed/")]
	if !ok {
		fail(w, http.StatusNotFound, "BlobNotFound")
		return
	}
	var from, to int
	if _, err := fmt.Sscanf(r.Header.Get("x-ms-range"), "bytes=%d-%d", &from, &to); err != nil || from >= len(text) {
		fail(w, http.StatusRequestedRangeNotSatisfiable, "InvalidRange")
		return
	}
	to = min(to, len(text)-1)
	w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(text)))
	w.Header().Set("Content-Length", fmt.Sprint(to-from+1))
	w.WriteHeader(http.StatusPartialContent)
	_, _ = io.WriteString(w, text[from:to+1])
}

func (b *blobs) list(w http.ResponseWriter, prefix, delimiter, marker string) {
	var lines []string // the blobs of a page come before its prefixes, as the service sends them
	var names []string
	for _, name := range slices.Sorted(maps.Keys(b.content)) {
		if rest, ok := strings.CutPrefix(name, prefix); ok {
			if i := strings.Index(rest, "/"); delimiter != "" && i >= 0 {
				name = prefix + rest[:i+1]
			}
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	from, _ := strconv.Atoi(strings.TrimSuffix(marker, "-"))
	pause := b.empty && marker != "" && !strings.HasSuffix(marker, "-")
	to := min(from+b.page, len(names))
	next := fmt.Sprint(to)
	switch {
	case pause:
		to, next = from, marker+"-"
	case to == len(names):
		next = ""
	}
	for _, isPrefix := range []bool{false, true} {
		for _, name := range names[from:to] {
			if text, ok := b.content[name]; ok && !isPrefix {
				lines = append(
					lines,
					fmt.Sprintf(
						"<Blob><Name>%s</Name><Properties><Content-Length>%d</Content-Length><Etag>0x1</Etag></Properties></Blob>",
						name,
						len(text),
					),
				)
			} else if !ok && isPrefix {
				lines = append(lines, "<BlobPrefix><Name>"+name+"</Name></BlobPrefix>")
			}
		}
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = io.WriteString(w, "\ufeff"+`<?xml version="1.0" encoding="utf-8"?><EnumerationResults><Blobs>`+
		strings.Join(lines, "")+`</Blobs><NextMarker>`+next+`</NextMarker></EnumerationResults>`)
}

// feed returns a whole one, small: a shard of two chunks, whose schema has one field.
func feed() *blobs {
	schema := `{"type":"record","name":"E","fields":[{"name":"id","type":"string"}]}`
	sync := strings.Repeat("\x09", 16)
	head := "Obj\x01\x02\x16avro.schema" + string([]byte{byte(len(schema)<<1&0x7f | 0x80), byte(len(schema) >> 6)}) +
		schema + "\x00" + sync
	return &blobs{page: 5000, content: map[string]string{
		"meta/segments.json":                     `{"lastConsumable":"2026-01-01T00:00:00Z"}`,
		"idx/segments/1601/01/01/0000/meta.json": `{}`,
		"idx/segments/2026/01/01/0000/meta.json": `{"begin":"2026-01-01T00:00:00Z","status":"Finalized","chunkFilePaths":["$blobchangefeed/log/00/2026/01/01/0000/"]}`,
		"log/00/2026/01/01/0000/00000.avro":      head + "\x02\x04\x02a" + sync + "\x02\x04\x02b" + sync,
		"log/00/2026/01/01/0000/00001.avro":      head + "\x02\x04\x02c" + sync,
	}}
}

// read is the way of a reader through a feed: every kind of request there is.
func read(ctx context.Context, s *Store) (ids []string, err error) {
	f := source.New(s, source.Options{ReadSize: 50})
	for seg, err := range f.Segments(ctx, source.Segment{}) {
		if err != nil {
			return ids, err
		}
		m, err := f.Manifest(ctx, seg)
		if err != nil {
			return ids, err
		}
		r := f.Shard(m, 0, source.ShardPosition{})
		if err := r.Poll(ctx, m.Finalized); err != nil {
			return ids, err
		}
		var b source.Batch
		for {
			err := r.Next(ctx, &b)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return ids, err
			}
			for _, e := range b.Events {
				ids = append(ids, e.ID)
			}
		}
	}
	return ids, nil
}

// kinds are the requests of read, by what they ask for.
var kinds = map[string]func(r *http.Request) bool{
	"watermark": func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "segments.json") },
	"index":     func(r *http.Request) bool { return strings.HasPrefix(r.URL.Query().Get("prefix"), "idx/") },
	"manifest":  func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "2026/01/01/0000/meta.json") },
	"chunks":    func(r *http.Request) bool { return strings.HasPrefix(r.URL.Query().Get("prefix"), "log/") },
	"chunk":     func(r *http.Request) bool { return strings.HasSuffix(r.URL.Path, "00000.avro") },
}
