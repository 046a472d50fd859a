// Package outbound guards the requests of our HTTP clients: they follow no redirect, and read no endless answer.
package outbound

import (
	"fmt"
	"io"
	"net/http"
	"strings"

	"blobfeed/internal/plain"
)

// maxHeader bounds the header of an answer.
const maxHeader = 64 << 10

// Guard returns t as a client's transport that refuses redirects, and bodies above limit bytes, or above the range that
// a request asks for. It changes t.
//
// A redirect would take credentials along, to a host of its choice or from https to http: in Authorization, in a form,
// or, a signature of the URL, in Referer. It would also turn a registration into a look-up whose answer is believed.
func Guard(t *http.Transport, limit int64) http.RoundTripper {
	t.MaxResponseHeaderBytes = maxHeader
	return &guard{t, limit}
}

type guard struct {
	next  http.RoundTripper
	limit int64
}

// RoundTrip implements http.RoundTripper.
func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	plain.Authorized(req.Header.Get("Authorization")) // the answer may repeat it
	resp, err := g.next.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	if to, err := resp.Location(); resp.StatusCode/100 == 3 && err == nil {
		_ = resp.Body.Close() // nothing in it is of use
		return nil, &RedirectError{Status: resp.StatusCode, To: plain.Line(to.Scheme + "://" + to.Host)}
	}
	limit := g.limit
	if asked := ranged(req.Header); resp.StatusCode == http.StatusPartialContent && asked > 0 {
		limit = asked
	}
	resp.Body = &limited{resp.Body, limit, limit}
	return resp, nil
}

// ranged returns how many bytes a request asks for, 0 if its header does not say. The SDK writes the name of its header
// in small letters, where Get does not find it.
func ranged(h http.Header) int64 {
	var from, to int64
	text := h.Get("Range")
	for name, values := range h {
		if strings.EqualFold(name, "x-ms-range") {
			text = strings.Join(values, ",")
		}
	}
	if _, err := fmt.Sscanf(text, "bytes=%d-%d", &from, &to); err != nil || from < 0 || to < from {
		return 0
	}
	return to - from + 1
}

// RedirectError is an answer that sends us elsewhere.
type RedirectError struct {
	Status int
	To     string // scheme and host: the rest of the address may repeat what we sent
}

func (e *RedirectError) Error() string {
	return fmt.Sprintf("it answers %d and redirects to %s: "+
		"redirects are not followed, since they would take the credentials along; "+
		"if that is the right address, set it", e.Status, e.To)
}

// NonRetriable keeps Azure's SDK from asking again at once.
func (e *RedirectError) NonRetriable() {}

// limited is a body that fails behind its limit, where io.LimitReader would cut it and hide that.
type limited struct {
	io.ReadCloser
	limit, left int64
}

func (l *limited) Read(p []byte) (int, error) {
	if l.left <= 0 {
		var one [1]byte
		if n, err := l.ReadCloser.Read(one[:]); n == 0 {
			return 0, err
		}
		return 0, &TooLongError{l.limit}
	}
	n, err := l.ReadCloser.Read(p[:min(int64(len(p)), l.left)])
	l.left -= int64(n)
	return n, err
}

// TooLongError is an answer with a body above the limit.
type TooLongError struct{ Limit int64 }

func (e *TooLongError) Error() string {
	return fmt.Sprintf("the answer is above the limit of %d bytes: check the address, and proxies on the way to it",
		e.Limit)
}

// NonRetriable keeps Azure's SDK from asking again at once.
func (e *TooLongError) NonRetriable() {}
