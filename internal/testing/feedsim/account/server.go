package account

import (
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"blobfeed/source/inventory"
)

// Server answers requests as the blob service does, below the path of any account: http://host/account/container/blob.
// It lists containers, lists blobs without a delimiter and answers HEAD requests for blobs. If Feed is set, it is the
// container $blobchangefeed, which Azure's SDKs can read. It checks no credentials.
type Server struct {
	Account *Account
	Feed    *Files
	// Fault returns the status and the error code of a request that fails, or 0. nil: none fails.
	Fault func(r *http.Request) (status int, code string)
	// IgnoreFrom lists from the start of a container, as Azurite before 3.37.
	IgnoreFrom bool

	buffers sync.Pool
}

// ServeHTTP implements http.Handler.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Date", s.Account.now().UTC().Format(http.TimeFormat))
	w.Header().Set("x-ms-version", r.Header.Get("x-ms-version"))
	w.Header().Set("x-ms-request-id", "0")
	if s.Fault != nil {
		if status, code := s.Fault(r); status != 0 {
			fail(w, status, code)
			return
		}
	}
	_, rest, _ := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	container, name, _ := strings.Cut(rest, "/")
	q := r.URL.Query()
	switch list := q.Get("comp") == "list"; {
	case container == feedContainer && s.Feed != nil && list:
		b, next := s.start(), ""
		*b, next = s.Feed.list(*b, q)
		s.send(w, b, next)
	case container == feedContainer && s.Feed != nil:
		s.Feed.read(w, r, name)
	case list && container == "":
		s.containers(w, q)
	case list:
		s.blobs(w, q, container)
	case r.Method == http.MethodHead && s.Account.Exists(container, name):
		w.WriteHeader(http.StatusOK)
	case r.Method == http.MethodHead:
		fail(w, http.StatusNotFound, "BlobNotFound")
	default:
		fail(w, http.StatusNotImplemented, "NotImplemented")
	}
}

const feedContainer = "$blobchangefeed"

func fail(w http.ResponseWriter, status int, code string) {
	w.Header().Set("x-ms-error-code", code)
	w.Header().Set("Content-Type", "application/xml")
	w.WriteHeader(status)
	_, _ = fmt.Fprintf(w, `<?xml version="1.0" encoding="utf-8"?><Error><Code>%s</Code></Error>`, code)
}

func number(q url.Values, key string, or int) int {
	if n, err := strconv.Atoi(q.Get(key)); err == nil && n > 0 {
		return min(n, or)
	}
	return or
}

// start begins a document in a buffer, which send writes and returns to the pool.
func (s *Server) start() *[]byte {
	b, _ := s.buffers.Get().(*[]byte)
	if b == nil {
		b = new([]byte)
	}
	*b = append((*b)[:0], "\ufeff"+`<?xml version="1.0" encoding="utf-8"?>`+
		`<EnumerationResults ServiceEndpoint="http://x/">`...)
	return b
}

func (s *Server) send(w http.ResponseWriter, b *[]byte, marker string) {
	*b = append(*b, "<NextMarker>"...)
	*b = appendText(*b, marker)
	*b = append(*b, "</NextMarker></EnumerationResults>"...)
	w.Header().Set("Content-Type", "application/xml")
	w.Header().Set("Content-Length", strconv.Itoa(len(*b)))
	_, _ = w.Write(*b)
	s.buffers.Put(b)
}

func (s *Server) containers(w http.ResponseWriter, q url.Values) {
	names, all := s.Account.names(strings.TrimPrefix(q.Get("marker"), marker), number(q, "maxresults", containersPage))
	b, next := s.start(), ""
	*b = append(*b, "<Containers>"...)
	for _, name := range names {
		*b = fmt.Appendf(*b, `<Container><Name>%s</Name><Properties><Etag>"0x1"</Etag></Properties></Container>`,
			name)
		next = marker + name
	}
	*b = append(*b, "</Containers>"...)
	if all {
		next = ""
	}
	s.send(w, b, next)
}

func (s *Server) blobs(w http.ResponseWriter, q url.Values, container string) {
	query := inventory.Query{Container: container, Prefix: q.Get("prefix"), From: q.Get("startFrom")}
	from := query.From
	if s.IgnoreFrom {
		from = ""
	}
	if m := q.Get("marker"); m != "" {
		if !strings.HasPrefix(m, marker) {
			fail(w, http.StatusBadRequest, "InvalidQueryParameterValue")
			return
		}
		from = strings.TrimPrefix(m, marker)
	}
	b := s.start()
	*b = append(*b, "<Blobs>"...)
	var d dates
	next, err := s.Account.page(query, from, number(q, "maxresults", inventory.MaxPage), func(e *entry) {
		*b = d.appendEntry(*b, e)
	})
	if errors.Is(err, inventory.ErrNoContainer) {
		s.buffers.Put(b)
		fail(w, http.StatusNotFound, "ContainerNotFound")
		return
	}
	*b = append(*b, "</Blobs>"...)
	if next != "" {
		next = marker + next
	}
	s.send(w, b, next)
}

// dates remembers how the last time was written: the next line often has the same.
type dates struct {
	second int64
	text   []byte
}

func (d *dates) append(b []byte, ticks int64) []byte {
	if second := ticks / ticksPerSecond; d.text == nil || second != d.second {
		d.second = second
		d.text = time.Unix(second, 0).UTC().AppendFormat(d.text[:0], http.TimeFormat)
	}
	return append(b, d.text...)
}

// appendEntry appends a line with all the elements that the service sends.
func (d *dates) appendEntry(b []byte, e *entry) []byte {
	b = append(b, "<Blob><Name"...)
	if strings.ContainsAny(e.name, "\ufffe\uffff") { // not in XML
		b = append(b, ` Encoded="true">`...)
		b = append(b, url.PathEscape(e.name)...)
	} else {
		b = append(b, '>')
		b = appendText(b, e.name)
	}
	b = append(b, "</Name><Properties><Creation-Time>"...)
	b = d.append(b, e.ticks)
	b = append(b, "</Creation-Time><Last-Modified>"...)
	b = d.append(b, e.ticks)
	b = append(b, "</Last-Modified><Etag>"...)
	b = appendETag(b, e.ticks)
	b = append(b, "</Etag><Content-Length>"...)
	b = strconv.AppendInt(b, e.length, 10)
	b = append(b, "</Content-Length><Content-Type>"...)
	b = appendText(b, e.contentType)
	b = append(b, "</Content-Type><Content-Encoding /><Content-Language /><Content-CRC64 /><Content-MD5>"+
		"1B2M2Y8AsgTpgAmY7PhCfg==</Content-MD5><Cache-Control /><Content-Disposition /><BlobType>"...)
	b = append(b, e.kind...)
	b = append(b, "</BlobType><AccessTier>"...)
	if e.tier == "" {
		b = append(b, "Hot</AccessTier><AccessTierInferred>true</AccessTierInferred>"...)
	} else {
		b = append(b, e.tier...)
		b = append(b, "</AccessTier>"...)
	}
	return append(b, "<LeaseStatus>unlocked</LeaseStatus><LeaseState>available</LeaseState>"+
		"<ServerEncrypted>true</ServerEncrypted></Properties><OrMetadata /></Blob>"...)
}

// appendText appends text with entities.
func appendText(b []byte, text string) []byte {
	for {
		i := strings.IndexAny(text, "&<>\r\n\t")
		if i < 0 {
			return append(b, text...)
		}
		b = append(b, text[:i]...)
		b = append(strconv.AppendInt(append(b, "&#"...), int64(text[i]), 10), ';')
		text = text[i+1:]
	}
}
