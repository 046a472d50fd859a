package topics

import (
	"testing"

	"blobfeed/internal/fakebroker"
)

// A topic that was created answers, and one that exists is no error.
func TestCreate(t *testing.T) {
	adm := fakebroker.Admin(t, fakebroker.New(t))
	for _, first := range []bool{true, false} {
		if have, created, err := Create(t.Context(), adm, "new", 3, 1, nil); err != nil || created != first ||
			have != 3 {
			t.Fatalf("%d partitions, created %v, %v", have, created, err)
		}
	}
}
