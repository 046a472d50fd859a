package setup

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"blobfeed/internal/config"
	"blobfeed/source"
)

// What an emulator or a directory has is a copy of a feed, which lacks what is missing. The service writes it later.
func TestCopies(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("x-ms-error-code", "BlobNotFound")
		w.WriteHeader(http.StatusNotFound)
	}))
	defer s.Close()
	for url, copied := range map[string]bool{s.URL: false, s.URL + "/account": true, s.URL + "/account/": true} {
		from, err := OpenSource(&config.Config{SourceURL: url, SourceAuth: "anonymous"}, Observe{})
		if err != nil {
			t.Fatal(err)
		}
		_, err = from.Feed.LastConsumable(t.Context())
		if errors.Is(err, source.ErrIncomplete) != copied || !copied && err != nil {
			t.Errorf("%s: %v", url, err)
		}
	}
}
