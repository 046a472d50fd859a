package bridge

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/offsets"
)

// With Once, a scan that was requested while no instance ran is carried out before the end.
func TestOnceWaitsForARequest(t *testing.T) {
	t.Parallel()
	w := newWorld(t, 2, 30)
	c := broker(t)
	o := w.options(c)
	o.Feed.InitialScan, o.Once = ScanYes, true
	must(t, New(o).Run(t.Context(), t.Context()))
	cl, err := kgo.NewClient(o.Kafka.Client...)
	must(t, err)
	defer cl.Close()
	r := offsets.Request{ID: "later", Time: time.Now()}
	must(t, offsets.Ask(t.Context(), cl, o.offsetsTopic(), r))
	must(t, New(o).Run(t.Context(), t.Context()))
	s := awaitState(t, o, "there is a state", func(s *offsets.State) bool { return s.Frontier != nil })
	if scan := s.Frontier.Scan; scan.ID != "later" || !scan.Done {
		t.Errorf("the last scan is %+v", scan)
	}
}
