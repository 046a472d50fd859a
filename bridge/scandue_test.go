package bridge

import (
	"testing"

	"blobfeed/internal/history"
	"blobfeed/offsets"
)

// An initial scan that would not take place is rejected, not left out without a word. The ways out work.
func TestInitialScanIsDue(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 20)
	c := broker(t)
	o := w.options(c)
	must(t, runOnce(t, o))
	o.Feed.InitialScan = ScanYes
	refused(t, o, "BRIDGE_INITIAL_SCAN=yes is for the first start", "bridge scan")
	o.Feed.InitialScan = NoScan
	must(t, runOnce(t, o))
}

func TestScanBehindAnExport(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 20)
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan = ScanOnly
	must(t, runOnce(t, o), runOnce(t, o))
	o.Feed.InitialScan = ScanYes
	refused(t, o, "has exported the account with only", "bridge seek --to ")
	f := awaitState(t, o, "the export is done", func(s *offsets.State) bool { return s.Frontier != nil }).Frontier
	to, err := history.ParseTarget(f.Scan.Begin.String())
	must(t, err)
	s := seize(t, o)
	must(t, s.Seek(t.Context(), to.Move))
	s.Close(t.Context())
	w.change(50)
	w.publish(false)
	must(t, runOnce(t, o))
	w.compare(c)
}
