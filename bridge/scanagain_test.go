package bridge

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"blobfeed/internal/plain"
)

// After a reset, an initial scan writes to a topic that holds records. Blobs that were deleted since have no row, so a
// sweep deletes their keys. Where no sweep is possible, the start is rejected.
func TestInitialScanAfterAReset(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 30)
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan = ScanOnly
	must(t, runOnce(t, o))
	w.compare(c)
	for b := range 10 {
		w.account.Delete(w.names[0], fmt.Sprintf("dir/ü%d", b))
	}
	s := seize(t, o)
	must(t, s.Reset(t.Context()))
	s.Close(t.Context())
	shared := o
	shared.Topics.Shared = true
	var settings *plain.SettingsError
	if err := runOnce(t, shared); !errors.As(err, &settings) || !strings.Contains(err.Error(), "deleted blobs") {
		t.Errorf("%v", err)
	}
	o.Feed.InitialScan = ScanYes
	must(t, runOnce(t, o))
	w.compare(c)
}
