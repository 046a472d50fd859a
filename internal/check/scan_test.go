package check

import (
	"context"
	"errors"
	"strings"
	"testing"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/testing/feedsim/account"
	"blobfeed/source/inventory"
)

// Before a scan, check says how much it has to list, and what is missing for it.
func TestScan(t *testing.T) {
	a := account.New(nil)
	for _, container := range []string{"photos", "logs", "empty"} {
		a.Create(container)
	}
	a.Put("photos", inventory.Blob{Name: "a"})
	refused := errors.New("the list right is missing")
	for name, tc := range map[string]struct {
		feed   bridge.Feed
		fails  string // the operation
		status Status
		want   string // "" for no finding
	}{
		"no scan":     {feed: bridge.Feed{InitialScan: bridge.NoScan}},
		"a directory": {feed: bridge.Feed{InitialScan: bridge.ScanYes}, status: "none"},
		"three containers": {feed: bridge.Feed{InitialScan: bridge.ScanYes}, status: OK,
			want: "lists 3 containers; each million blobs takes 200 list requests, about $0.001 at the list price of a " +
				"hot, locally redundant account; a sweep also makes a HEAD request for each key without a blob, about " +
				"$0.40 for a million"},
		"a filter": {feed: bridge.Feed{RescanGaps: true, Filter: envelope.Filter{Containers: []string{"logs"}}},
			status: OK, want: "lists 1 container;"},
		"nothing selected": {feed: bridge.Feed{InitialScan: bridge.ScanOnly,
			Filter: envelope.Filter{Containers: []string{"gone"}}}, status: Warning, want: "writes no row"},
		"containers cannot be listed": {feed: bridge.Feed{InitialScan: bridge.ScanYes}, fails: "containers",
			status: Failed, want: refused.Error()},
		"blobs cannot be listed": {feed: bridge.Feed{InitialScan: bridge.ScanYes}, fails: "list", status: Failed,
			want: refused.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			if tc.status != "none" {
				tc.feed.Inventory = &account.Store{Account: a,
					Before: func(_ context.Context, op string, _ inventory.Query) error {
						if op == tc.fails {
							return refused
						}
						return nil
					}}
			}
			var fs Findings
			fs.scan(t.Context(), &bridge.Options{Feed: tc.feed})
			if tc.want == "" {
				if len(fs) != 0 {
					t.Errorf("%+v", fs)
				}
				return
			}
			if len(fs) != 1 || fs[0].Status != tc.status || !strings.Contains(fs[0].Detail, tc.want) {
				t.Errorf("%+v", fs)
			}
		})
	}
}
