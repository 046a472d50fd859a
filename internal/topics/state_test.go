package topics

import (
	"errors"
	"log/slog"
	"testing"
	"time"

	"blobfeed/internal/testing/fakebroker"
)

// A topic from which retention would delete progress is rejected, with the command that mends it.
func TestOpenStateThatIsDeleted(t *testing.T) {
	c := fakebroker.New(t)
	policy := "delete"
	if _, err := fakebroker.Admin(t, c).CreateTopic(t.Context(), 1, 1, map[string]*string{cleanupPolicy: &policy},
		"b.offsets"); err != nil {
		t.Fatal(err)
	}
	for _, by := range []Creator{ByBridge, ByNobody} {
		a := &Admin{Plan: Plan{Creation: Creation{By: by, Flags: "--bootstrap-server k:9092"}}, Client: fakebroker.Client(t, c), Now: time.Now,
			Log: slog.New(slog.DiscardHandler)}
		_, _, err := a.OpenState(t.Context(), "b.offsets", 4)
		var problem *Problem
		if !errors.As(err, &problem) || problem.Do != "run kafka-configs.sh --bootstrap-server k:9092 --alter "+
			"--topic b.offsets --add-config cleanup.policy=compact" {
			t.Errorf("%v", err)
		}
	}
}
