package azure

import (
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"testing"
	"time"

	"blobfeed/source"
)

// The service rewrites manifests in place. A body that breaks while that happens is asked for again from where it
// broke, and must not be completed with the other version's end: whatever byte it breaks at, the manifest is the old
// one, the new one, or an error that is tried again.
func TestManifestIsOfOneVersion(t *testing.T) {
	const text = `{"version":0,"begin":"2026-01-01T01:00:00.000Z","intervalSecs":3600,"status":"%s","config":{"version":1,"numShards":3},` +
		`"chunkFilePaths":["$blobchangefeed/log/00/2026/01/01/0100/","$blobchangefeed/log/01/2026/01/01/0100/","$blobchangefeed/log/02/2026/01/01/0100/"],` +
		`"storageDiagnostics":{"version":0,"lastModifiedTime":"2026-01-01T01:00:00.000Z"}}`
	versions := []string{fmt.Sprintf(text, "Publishing"), fmt.Sprintf(text, "Finalized")}
	segment := source.SegmentAt(time.Date(2026, 1, 1, 1, 0, 0, 0, time.UTC))
	read := func(cut int) (source.Manifest, error) {
		store, _ := server(t, func(w http.ResponseWriter, r *http.Request, n int) {
			body, etag := versions[1], `"0x2"`
			if n == 1 && cut > 0 {
				body, etag = versions[0], `"0x1"`
			}
			if match := r.Header.Get("If-Match"); match != "" && match != etag {
				w.Header().Set("x-ms-error-code", "ConditionNotMet")
				w.WriteHeader(http.StatusPreconditionFailed)
				return
			}
			var from int
			if _, err := fmt.Sscanf(r.Header.Get("x-ms-range"), "bytes=%d-", &from); err != nil {
				t.Error(err)
			}
			w.Header().Set("ETag", etag)
			w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-%d/%d", from, len(body)-1, len(body)))
			w.Header().Set("Content-Length", fmt.Sprint(len(body)-from))
			w.WriteHeader(http.StatusPartialContent)
			if n == 1 && cut > 0 {
				_, _ = w.Write([]byte(body[:cut]))
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
			_, _ = w.Write([]byte(body[from:]))
		})
		return source.New(store, source.Options{}).Manifest(t.Context(), segment)
	}
	want, err := read(0)
	if err != nil {
		t.Fatal(err)
	}
	for cut := 1; cut < len(versions[0]); cut++ {
		m, err := read(cut)
		if err != nil {
			continue
		}
		if m.Finalized = true; !reflect.DeepEqual(m, want) {
			t.Errorf("broken at byte %d: interval %s, %v", cut, m.Interval, m.Paths)
		}
	}
}

// A read ends even if each answer is of another version, and breaks off.
func TestReadOfEverNewVersions(t *testing.T) {
	store, requests := server(t, func(w http.ResponseWriter, r *http.Request, n int) {
		if n > 100 {
			http.Error(w, "enough", http.StatusBadRequest)
			return
		}
		var from int
		if _, err := fmt.Sscanf(r.Header.Get("x-ms-range"), "bytes=%d-", &from); err != nil {
			t.Error(err)
		}
		w.Header().Set("ETag", fmt.Sprintf(`"%d"`, n))
		w.Header().Set("Content-Range", fmt.Sprintf("bytes %d-9/10", from))
		w.Header().Set("Content-Length", fmt.Sprint(10-from))
		w.WriteHeader(http.StatusPartialContent)
		_, _ = w.Write([]byte(content[from : from+1]))
		_ = http.NewResponseController(w).Flush()
		panic(http.ErrAbortHandler)
	})
	_, err := store.ReadAt(t.Context(), "x", make([]byte, 10), 0)
	if !errors.Is(err, errRewritten) || requests() > 20 {
		t.Errorf("%v after %d requests", err, requests())
	}
}
