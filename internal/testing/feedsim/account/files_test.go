package account

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// whole counts the writes of an answer.
type whole struct {
	*httptest.ResponseRecorder
	writes int
}

func (w *whole) Write(p []byte) (int, error) {
	w.writes++
	return w.ResponseRecorder.Write(p)
}

// Azure's SDKs ask for a file in several ways, for its properties, and for those of the container.
func TestFilesAnswerTheSDKs(t *testing.T) {
	files := NewFiles()
	if err := files.Put(t.Context(), "log/a", []byte("0123456789")); err != nil {
		t.Fatal(err)
	}
	s := &Server{Account: New(nil), Feed: files}
	for _, tc := range []struct {
		method, path, header, value string
		status                      int
		body                        string
	}{
		{"GET", "/log/a", "", "", http.StatusOK, "0123456789"},
		{"HEAD", "/log/a", "", "", http.StatusOK, "0123456789"}, // which net/http does not send
		{"GET", "/log/a", "Range", "bytes=8-", http.StatusPartialContent, "89"},
		{"GET", "/log/a", "x-ms-range", "bytes=2-4", http.StatusPartialContent, "234"},
		{"GET", "/log/a", "x-ms-range", "bytes=8-99", http.StatusPartialContent, "89"},
		{"GET", "/log/a", "x-ms-range", "bytes=10-", http.StatusRequestedRangeNotSatisfiable, "InvalidRange"},
		{"GET", "/log/b", "", "", http.StatusNotFound, "BlobNotFound"},
		{"GET", "?restype=container", "", "", http.StatusOK, ""},
		{"GET", "?restype=container&comp=list&prefix=log/", "", "", http.StatusOK, "<BlobType>AppendBlob</BlobType>"},
	} {
		r := httptest.NewRequest(tc.method, "http://x/acct/$blobchangefeed"+tc.path, nil)
		r.Header.Set(tc.header, tc.value)
		w := &whole{ResponseRecorder: httptest.NewRecorder()}
		s.ServeHTTP(w, r)
		body, exact := w.Body.String(), tc.status < 300 && !strings.Contains(tc.path, "comp=list")
		if w.Code != tc.status || !strings.Contains(body, tc.body) || exact && body != tc.body || w.writes != 1 {
			t.Errorf("%s %s, %s: %d, %q in %d writes", tc.method, tc.path, tc.value, w.Code, body, w.writes)
		}
		if exact && (w.Header().Get("ETag") == "" || w.Header().Get("Last-Modified") == "") {
			t.Errorf("%s %s: no properties: %v", tc.method, tc.path, w.Header())
		}
	}
}
