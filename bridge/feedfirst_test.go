package bridge

import (
	"errors"
	"testing"

	"blobfeed/internal/testing/fakebroker"
)

// A first start that cannot read the feed leaves no topics behind.
func TestFirstStartReadsTheFeedFirst(t *testing.T) {
	c, m := broker(t), newMemory()
	m.segment("2026/01/01/0000", "Finalized", 60, map[int][]happened{0: {{"a", "2026-01-01T00:10:00Z", "c/b"}}})
	refused := errors.New("403 AuthorizationFailure")
	m.onRead = func(string) error { return refused }
	o, _ := over(t, c, m)
	if err := runOnce(t, o); !errors.Is(err, refused) {
		t.Errorf("%v, want %v", err, refused)
	}
	listed, err := fakebroker.Admin(t, c).ListTopics(t.Context())
	must(t, err)
	if names := listed.Names(); len(names) > 0 {
		t.Errorf("topics are there: %q", names)
	}
	m.onRead = nil
	must(t, runOnce(t, o))
}
