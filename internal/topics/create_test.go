package topics

import (
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kerr"

	"blobfeed/internal/plain"
	"blobfeed/internal/testing/fakebroker"
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

// A topic that the brokers reject has the same remedy in a check and in a run.
func TestCreateIsRejected(t *testing.T) {
	adm := fakebroker.Admin(t, fakebroker.New(t))
	_, _, err := Create(t.Context(), adm, "new", 3, 9, nil)
	if text, do := plain.SplitRemedy(err); do == "" || do != CreateAdvice(err) ||
		!strings.Contains(text, "creating topic new") {
		t.Errorf("%v", err)
	}
	if do := CreateAdvice(err); !strings.Contains(do, "at most the number of brokers") {
		t.Errorf("too many replicas: %q", do)
	}
	if do := CreateAdvice(kerr.NotController); do != "" {
		t.Errorf("%q for an error that passes", do)
	}
}
