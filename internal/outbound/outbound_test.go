package outbound

import (
	"compress/gzip"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// The limit holds for an answer of status 206, too, packed or not, unless a range was asked for. Then the range is the
// limit, however long it is.
func TestLimits(t *testing.T) {
	const limit = 1000
	for name, c := range map[string]struct {
		header, asked string
		status, size  int
		packed        bool
		fails         bool
	}{
		"an answer":                   {status: 200, size: limit},
		"a long answer":               {status: 200, size: limit + 1, fails: true},
		"a part nobody asked for":     {status: 206, size: limit + 1, fails: true},
		"a packed part":               {status: 206, size: 1 << 20, packed: true, fails: true},
		"a range":                     {"Range", "bytes=5-2004", 206, 2000, false, false},
		"a range of storage":          {"x-ms-range", "bytes=5-2004", 206, 2000, false, false},
		"more than the range":         {"x-ms-range", "bytes=5-2004", 206, 2001, false, true},
		"more than a short range":     {"Range", "bytes=0-4", 206, 6, false, true},
		"an error for a range":        {"Range", "bytes=5-2004", 500, limit + 1, false, true},
		"a range without an end":      {"Range", "bytes=5-", 206, limit + 1, false, true},
		"a range that is none":        {"Range", "bytes=9-5", 206, limit + 1, false, true},
		"a range of more than counts": {"Range", "bytes=0-9223372036854775807", 206, limit + 1, false, true},
	} {
		t.Run(name, func(t *testing.T) {
			srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				body := strings.Repeat("x", c.size)
				if !c.packed {
					w.WriteHeader(c.status)
					_, _ = io.WriteString(w, body)
					return
				}
				w.Header().Set("Content-Encoding", "gzip")
				w.WriteHeader(c.status)
				z := gzip.NewWriter(w)
				_, _ = io.WriteString(z, body)
				_ = z.Close()
			}))
			defer srv.Close()
			req, err := http.NewRequest(http.MethodGet, srv.URL, nil)
			if err != nil {
				t.Fatal(err)
			}
			if c.header != "" {
				req.Header.Set(c.header, c.asked)
			}
			cl := &http.Client{Transport: Guard(http.DefaultTransport.(*http.Transport).Clone(), limit)}
			resp, err := cl.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			n, err := io.Copy(io.Discard, resp.Body)
			var long *TooLongError
			if errors.As(err, &long) != c.fails || !c.fails && (err != nil || n != int64(c.size)) {
				t.Errorf("%d bytes, %v", n, err)
			}
		})
	}
}
