package topics

import (
	"bytes"
	"context"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"

	"blobfeed/internal/fakebroker"
)

// A broker may answer with the retention of a new topic after it was turned off. That is no warning.
func TestRetentionThatWasTurnedOff(t *testing.T) {
	c := fakebroker.New(t)
	var log bytes.Buffer
	oldest := func(context.Context) (time.Time, bool, error) { return time.Unix(0, 0), true, nil }
	a := &Admin{Plan: Plan{Partitions: 1, Replication: 1}, Client: fakebroker.Client(t, c), Now: time.Now, Oldest: oldest,
		Log: slog.New(slog.NewTextHandler(&log, nil))}
	names := []string{"a", "b"}
	if n, err := a.Prepare(t.Context(), names); n != len(names) || err != nil {
		t.Fatal(n, err)
	}
	week := "604800000"
	stale := []kadm.AlterConfig{{Op: kadm.SetConfig, Name: retention, Value: &week}}
	if _, err := fakebroker.Admin(t, c).AlterTopicConfigs(t.Context(), stale, "a"); err != nil {
		t.Fatal(err)
	}
	for _, name := range names {
		if _, err := a.Open(t.Context(), name); err != nil {
			t.Error(err)
		}
	}
	if n := strings.Count(log.String(), "WARN"); n != 1 {
		t.Errorf("%d warnings, want the one that history is kept: %s", n, &log)
	}
}
