package azure

import (
	"bytes"
	"encoding/xml"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/policy"

	"blobfeed/internal/testing/ceiling"
	"blobfeed/source"
)

// A listing of any length in pages of any size, also of none, gives every line once and in order.
func TestListingsInPagesOfAnySize(t *testing.T) {
	b := &blobs{content: map[string]string{"meta/segments.json": `{"lastConsumable":"2030-01-01T00:00:00Z"}`}}
	var want []string
	for at := time.Date(2025, 12, 30, 22, 0, 0, 0, time.UTC); len(want) < 60; at = at.Add(time.Hour) {
		name := at.Format("2006/01/02/1504")
		want = append(want, name)
		b.content["idx/segments/"+name+"/meta.json"] = ""
	}
	s := httptest.NewServer(b)
	t.Cleanup(s.Close)
	store, err := New(Config{Endpoint: s.URL + "/acct", Auth: "anonymous", Retry: policy.RetryOptions{MaxRetries: -1}})
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range []int{1, 2, 7, 5000} {
		for _, empty := range []bool{false, true} {
			b.page, b.empty = page, empty
			var got []string
			for seg, err := range source.New(store, source.Options{}).Segments(t.Context(), source.Segment{}) {
				if err != nil {
					t.Fatal(err)
				}
				got = append(got, seg.String())
			}
			if !slices.Equal(got, want) {
				t.Errorf("pages of %d, some empty: %v: %d of %d segments", page, empty, len(got), len(want))
			}
		}
	}
	// More than the service sends at once.
	b.content, b.page, b.empty = map[string]string{}, 5000, false
	for i := range 5003 {
		b.content[fmt.Sprintf("log/00/2026/01/01/0000/%05d.avro", i)] = "x"
	}
	n := 0
	for e, err := range store.List(t.Context(), "log/00/2026/01/01/0000/", "") {
		if want := fmt.Sprintf("log/00/2026/01/01/0000/%05d.avro", n); err != nil || e.Name != want || e.Size != 1 {
			t.Fatalf("line %d: %+v, %v", n, e, err)
		}
		n++
	}
	if n != 5003 {
		t.Errorf("%d lines", n)
	}
}

// Whatever a server sends as a listing: no panic, and an entry for each blob of it or an error, never fewer. (The
// second page of a body that names one is empty, so that the listing ends.)
func FuzzListing(f *testing.F) {
	for _, file := range []string{"years.xml", "chunks.xml"} {
		b, err := os.ReadFile("testdata/" + file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(b, file == "years.xml")
	}
	const open, end = `<EnumerationResults><Blobs>`, `</Blobs><NextMarker /></EnumerationResults>`
	for _, delimited := range []bool{false, true} {
		f.Add([]byte(open+end), delimited)
		f.Add([]byte(`<EnumerationResults><Blobs /><NextMarker>more</NextMarker></EnumerationResults>`), delimited)
		f.Add([]byte(`<EnumerationResults><NextMarker>more</NextMarker></EnumerationResults>`), delimited)
		f.Add(
			[]byte(
				open+`<Blob><Name>log/00/00000.avro</Name><Properties><Content-Length>-5</Content-Length></Properties></Blob>`+end,
			),
			delimited,
		)
		f.Add(
			[]byte(open+`<Blob><Name Encoded="true">a%ef%bf%bfb</Name></Blob><BlobPrefix><Name>a/</Name></BlobPrefix>`+end),
			delimited,
		)
		f.Add([]byte(open+`<Blob><Name>a</Name><Properties><Content-Length>7`), delimited)
	}
	var body []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/xml")
		if r.URL.Query().Get("marker") != "" {
			_, _ = w.Write([]byte(open + end))
			return
		}
		_, _ = w.Write(body)
	}))
	f.Cleanup(s.Close)
	store, err := New(Config{Endpoint: s.URL + "/acct", Auth: "anonymous", Retry: policy.RetryOptions{MaxRetries: -1}})
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, b []byte, delimited bool) {
		body = b
		delimiter := ""
		if delimited {
			delimiter = "/"
		}
		entries, failed := 0, false
		ceiling.Hold(t, 16<<20+200*uint64(len(b)), func() {
			for e, err := range store.List(t.Context(), "", delimiter) {
				if failed {
					t.Fatal("something follows an error")
				}
				if failed = err != nil; !failed {
					entries++
					if e.IsPrefix && (!delimited || e.Size != 0) {
						t.Fatalf("prefix %+v", e)
					}
				}
			}
		})
		if failed {
			return
		}
		var doc struct {
			Blobs *struct {
				Blob, BlobPrefix []struct{}
			}
		}
		if xml.Unmarshal(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), &doc) != nil {
			return // stricter: it checks what is skipped, too
		}
		if doc.Blobs == nil {
			t.Fatalf("%d entries of what is no listing", entries)
		}
		want := len(doc.Blobs.Blob)
		if delimited {
			want += len(doc.Blobs.BlobPrefix)
		}
		if entries != want {
			t.Fatalf("%d entries of %d", entries, want)
		}
	})
}
