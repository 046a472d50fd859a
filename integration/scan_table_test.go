//go:build integration

package integration

import (
	"encoding/json"
	"testing"

	"blobfeed/verify"
)

// blobRow is what rows say of a blob, and listings, too.
type blobRow struct {
	ETag        string
	Length      int64  `json:"content_length"`
	ContentType string `json:"content_type"`
	Type        string `json:"blob_type"`
	Tier        string `json:"blob_tier"` // "": inferred
}

// blobTable is what a consumer has: the last row of each key, by container/name.
type blobTable struct{ rows map[string]blobRow }

func newBlobTable() *blobTable { return &blobTable{rows: map[string]blobRow{}} }

func (t *blobTable) Note(r verify.Record) {
	if r.Key == nil {
		return
	}
	var path []string
	var value struct{ After *blobRow }
	if json.Unmarshal(r.Key, &path) != nil || json.Unmarshal(r.Value, &value) != nil {
		return
	}
	delete(t.rows, path[0])
	if value.After != nil {
		t.rows[path[0]] = *value.After
	}
}

func (t *blobTable) Failures() []verify.Failure { return nil }

// compare fails where the table is not the account.
func (s *scanned) compare(t *testing.T, got *blobTable) {
	t.Helper()
	want, wrong := s.account.Blobs(), 0
	for path, b := range want {
		if got.rows[path].ETag != b.ETag {
			if wrong++; wrong <= 5 {
				t.Errorf("%q: the topic has etag %q, the account %q", path, got.rows[path].ETag, b.ETag)
			}
		}
	}
	for path := range got.rows {
		if _, ok := want[path]; !ok {
			if wrong++; wrong <= 5 {
				t.Errorf("%q: the account does not have it", path)
			}
		}
	}
	t.Logf("%d keys, %d of them wrong", len(want), wrong)
}

// scanRows counts the rows of a scan. Each key has one, before all of its events.
type scanRows struct {
	n        int
	feed     bool // the first event came
	fed      map[int32]bool
	rows     map[string]bool
	failures []verify.Failure
}

func newScanRows() *scanRows { return &scanRows{rows: map[string]bool{}, fed: map[int32]bool{}} }

func (s *scanRows) Note(r verify.Record) {
	if r.Key == nil {
		return
	}
	if r.Header("scan") == nil {
		s.feed, s.fed[r.Partition] = true, true
		return
	}
	s.n++
	if s.rows[string(r.Key)] || s.fed[r.Partition] {
		s.failures = append(s.failures, verify.Failure{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset,
			Key: string(r.Key), Problem: "a row that is doubled, or behind an event"})
	}
	s.rows[string(r.Key)] = true
}

func (s *scanRows) Failures() []verify.Failure { return s.failures }
