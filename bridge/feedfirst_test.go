package bridge

import (
	"errors"
	"strings"
	"testing"

	"blobfeed/internal/testing/fakebroker"
)

// A first start that cannot read the feed leaves no topics behind. Credentials may permit a part of it.
func TestFirstStartReadsTheFeedFirst(t *testing.T) {
	for _, missing := range []string{"meta/", "idx/segments/", "idx/segments/2026/01/01/0000/meta.json", "log/"} {
		t.Run(missing, func(t *testing.T) {
			c, m := broker(t), newMemory()
			m.segment("2026/01/01/0000", "Finalized", 60, map[int][]happened{0: {{"a", "2026-01-01T00:10:00Z", "c/b"}}})
			refused := errors.New("403 AuthorizationFailure")
			m.onRead = func(name string) error {
				if strings.HasPrefix(name, missing) {
					return refused
				}
				return nil
			}
			m.onList = m.onRead
			o, _ := over(t, c, m)
			if err := runOnce(t, o); !errors.Is(err, refused) {
				t.Errorf("%v, want %v", err, refused)
			}
			listed, err := fakebroker.Admin(t, c).ListTopics(t.Context())
			must(t, err)
			if names := listed.Names(); len(names) > 0 {
				t.Errorf("topics are there: %q", names)
			}
			m.onRead, m.onList = nil, nil
			must(t, runOnce(t, o))
		})
	}
}
