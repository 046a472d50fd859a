package blobsink

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"blobfeed/internal/testing/feedsim"
)

// account is as much of blob storage as a Sink needs.
type account struct {
	mu        sync.Mutex
	container bool
	blobs     map[string][]byte
	kinds     map[string]string
}

func (a *account) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	a.mu.Lock()
	defer a.mu.Unlock()
	data, err := io.ReadAll(r.Body)
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	name := strings.TrimPrefix(r.URL.Path, "/acct/"+Container)
	refuse := func(status int, code string) {
		w.Header().Set("x-ms-error-code", code)
		w.WriteHeader(status)
	}
	_, exists := a.blobs[name]
	switch kind, comp := r.Header.Get("x-ms-blob-type"), r.URL.Query().Get("comp"); {
	case r.Method != http.MethodPut:
		refuse(http.StatusMethodNotAllowed, "UnsupportedHttpVerb")
		return
	case r.URL.Query().Get("restype") == "container" && a.container:
		refuse(http.StatusConflict, "ContainerAlreadyExists")
		return
	case r.URL.Query().Get("restype") == "container":
		a.container = true
	case !a.container:
		refuse(http.StatusNotFound, "ContainerNotFound")
		return
	case comp == "appendblock" && !exists:
		refuse(http.StatusNotFound, "BlobNotFound")
		return
	case comp == "appendblock":
		a.blobs[name] = append(a.blobs[name], data...)
	default:
		a.blobs[name], a.kinds[name] = data, kind+" "+r.Header.Get("x-ms-blob-content-type")
	}
	w.WriteHeader(http.StatusCreated)
}

// A feed in blob storage has the bytes of the same one in a directory.
func TestSink(t *testing.T) {
	a := &account{blobs: map[string][]byte{}, kinds: map[string]string{}}
	srv := httptest.NewServer(a)
	defer srv.Close()
	connect := fmt.Sprintf("DefaultEndpointsProtocol=http;AccountName=acct;AccountKey=a2V5;BlobEndpoint=%s/acct;",
		srv.URL)
	spec := feedsim.Spec{Segments: 2, Shards: 2, ChunksPerShard: 2, EventsPerSegment: 500, TornAppends: true}
	for range 2 { // the second time, the container exists
		clear(a.blobs)
		sink, err := Connect(t.Context(), connect)
		if err != nil {
			t.Fatal(err)
		}
		if err := feedsim.Write(t.Context(), sink, spec, nil); err != nil {
			t.Fatal(err)
		}
	}
	root := t.TempDir()
	if err := feedsim.Write(t.Context(), feedsim.Dir(root), spec, nil); err != nil {
		t.Fatal(err)
	}
	if len(a.blobs) != 3+2*2*2 {
		t.Errorf("%d blobs", len(a.blobs))
	}
	for name, data := range a.blobs {
		want, err := os.ReadFile(filepath.Join(root, name))
		if err != nil {
			t.Fatal(err)
		}
		if string(data) != string(want) {
			t.Errorf("%s: %d bytes differ from those in the directory, %d", name, len(data), len(want))
		}
		kind := "BlockBlob "
		if strings.HasSuffix(name, ".avro") {
			kind = "AppendBlob avro/binary"
		}
		if a.kinds[name] != kind {
			t.Errorf("%s is a %s", name, a.kinds[name])
		}
	}
}
