package main

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobfeed/integration/stack"
)

// endpoint answers the requests of Azure's SDKs for one container that does not change, from memory: Azurite would be
// slower than the fast readers. It checks no credentials.
type endpoint struct {
	files    map[string][]byte
	names    []string // in order, once all files are written
	modified time.Time
	server   *http.Server
	listener net.Listener
}

const (
	containerPath = "/" + stack.AzuriteAccount + "/$blobchangefeed"
	etag          = `"0x8D9000000000000"` // of the container and of each file
)

// Put implements feedsim.Sink.
func (e *endpoint) Put(_ context.Context, name string, data []byte) error {
	e.files[name] = bytes.Clone(data)
	return nil
}

// Append implements feedsim.Sink.
func (e *endpoint) Append(_ context.Context, name string, data []byte) error {
	e.files[name] = append(e.files[name], data...)
	return nil
}

// serve returns the connection string.
func (e *endpoint) serve() (connection string, err error) {
	for name := range e.files {
		e.names = append(e.names, name)
	}
	slices.Sort(e.names)
	e.modified = time.Now().UTC().Truncate(time.Second)
	if e.listener, err = net.Listen("tcp", "127.0.0.1:0"); err != nil {
		return "", err
	}
	e.server = &http.Server{Handler: e}
	go e.server.Serve(e.listener) //nolint:errcheck // it ends with close
	return fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=%s;AccountKey=%s;BlobEndpoint=http://%s/%s;",
		stack.AzuriteAccount, stack.AzuriteKey, e.listener.Addr(), stack.AzuriteAccount), nil
}

func (e *endpoint) close() error {
	if e.server == nil {
		return nil
	}
	return e.server.Close()
}

// ServeHTTP implements http.Handler.
func (e *endpoint) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("ETag", etag)
	h.Set("x-ms-version", r.Header.Get("x-ms-version"))
	h.Set("x-ms-request-id", "0")
	path, name := r.URL.Path, ""
	if rest, ok := strings.CutPrefix(path, containerPath+"/"); ok {
		path, name = containerPath, rest
	}
	data, found := e.files[name]
	switch {
	case path != containerPath:
		fail(w, "ContainerNotFound")
	case r.URL.Query().Get("comp") == "list":
		e.list(w, r.URL.Query())
	case name == "":
		h.Set("Last-Modified", e.modified.Format(http.TimeFormat))
		w.WriteHeader(http.StatusOK)
	case !found:
		fail(w, "BlobNotFound")
	default:
		h.Set("Content-Type", "application/octet-stream")
		h.Set("x-ms-blob-type", "AppendBlob")
		h.Set("x-ms-creation-time", e.modified.Format(http.TimeFormat))
		h.Set("x-ms-server-encrypted", "true")
		h.Set("Last-Modified", e.modified.Format(http.TimeFormat))
		part(w, r, data)
	}
}

// part answers with the range of data that is asked for. It writes small answers at once, unlike http.ServeContent: the
// SDK for JavaScript takes the first bytes that come for all of a manifest.
func part(w http.ResponseWriter, r *http.Request, data []byte) {
	h, status, from, to := w.Header(), http.StatusOK, 0, len(data)-1
	if of := cmp.Or(r.Header.Get("x-ms-range"), r.Header.Get("Range")); of != "" {
		_, _ = fmt.Sscanf(of, "bytes=%d-%d", &from, &to) // the end may be missing
		if from >= len(data) {
			h.Set("x-ms-error-code", "InvalidRange")
			w.WriteHeader(http.StatusRequestedRangeNotSatisfiable)
			return
		}
		status, to = http.StatusPartialContent, min(to, len(data)-1)
		h.Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, to, len(data)))
	}
	h.Set("Content-Length", strconv.Itoa(to-from+1))
	w.WriteHeader(status)
	if r.Method != http.MethodHead {
		_, _ = w.Write(data[from : to+1])
	}
}

func fail(w http.ResponseWriter, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(http.StatusNotFound)
	_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code></Error>`, code)
}

// list answers with one page. Markers are names.
func (e *endpoint) list(w http.ResponseWriter, q url.Values) {
	prefix, delimiter, after := q.Get("prefix"), q.Get("delimiter"), q.Get("marker")
	most := 5000
	if n, err := strconv.Atoi(q.Get("maxresults")); err == nil {
		most = min(n, most)
	}
	var items bytes.Buffer
	last, next, count := after, "", 0
	for _, name := range e.names {
		rest, ok := strings.CutPrefix(name, prefix)
		if !ok {
			continue
		}
		line := name
		if head, _, cut := strings.Cut(rest, delimiter); delimiter != "" && cut {
			line = prefix + head + delimiter
		}
		if line <= last {
			continue
		}
		if count == most {
			next = last
			break
		}
		last = line
		count++
		if line != name {
			fmt.Fprintf(&items, "<BlobPrefix><Name>%s</Name></BlobPrefix>", line)
			continue
		}
		fmt.Fprintf(&items, "<Blob><Name>%s</Name><Properties><Creation-Time>%[2]s</Creation-Time><Last-Modified>%[2]s"+
			"</Last-Modified><Etag>%s</Etag><Content-Length>%d</Content-Length><Content-Type>application/octet-stream"+
			"</Content-Type><BlobType>AppendBlob</BlobType></Properties></Blob>", name,
			e.modified.Format(http.TimeFormat), strings.Trim(etag, `"`), len(e.files[name]))
	}
	w.Header().Set("Content-Type", "application/xml")
	_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><EnumerationResults ServiceEndpoint="http://%s/%s/" `+
		`ContainerName="$blobchangefeed"><Prefix>%s</Prefix><Delimiter>%s</Delimiter><MaxResults>%d</MaxResults>`+
		`<Blobs>%s</Blobs><NextMarker>%s</NextMarker></EnumerationResults>`, e.listener.Addr(), stack.AzuriteAccount,
		prefix, delimiter, most, &items, next)
}
