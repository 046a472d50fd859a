package account

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
)

// The server must be much faster than what reads from it.
func BenchmarkServer(b *testing.B) {
	s := &Server{Account: New(nil)}
	Fill(s.Account, 100_000)
	srv := httptest.NewServer(s)
	defer srv.Close()
	for b.Loop() {
		resp, err := http.Get(srv.URL + "/acct/flat?comp=list&maxresults=5000&startFrom=data/part-000020000.parquet")
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil || resp.StatusCode != http.StatusOK {
			b.Fatal(resp.Status, err)
		}
		_ = resp.Body.Close()
	}
	b.ReportMetric(float64(b.N)*5000/b.Elapsed().Seconds(), "blobs/s")
}
