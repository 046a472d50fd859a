package change

import (
	"strings"
	"testing"

	"blobfeed/internal/history"
	"blobfeed/offsets"
)

// A plan shows times as people write them. A timestamp that a time does not identify is shown, too.
func TestPlanShowsTimes(t *testing.T) {
	target, err := history.ParseTarget("2020-05-29T17:00:00Z")
	if err != nil {
		t.Fatal(err)
	}
	state := &offsets.State{Frontier: &offsets.Frontier{Resolved: "1590788700000000000.0000000000",
		Start: "1590700000000000000.0000000007"}}
	seek, reset := &Plan{Name: "b"}, &Plan{Name: "b"}
	if err := planSeek(state, target, when(target.String()), seek); err != nil {
		t.Fatal(err)
	}
	planReset(state, reset)
	for name, plan := range map[string]*Plan{"seek": seek, "reset": reset} {
		var b strings.Builder
		plan.Text(&b)
		text := strings.ReplaceAll(b.String(), "2020-05-28T21:06:40Z (1590700000000000000.0000000007)", "")
		if !strings.Contains(text, "2020-05-29T21:45:00Z") || strings.Contains(text, ".00000000") ||
			name == "seek" && !strings.Contains(text, "2020-05-29T17:00:00Z") {
			t.Errorf("%s: %s", name, b.String())
		}
	}
}
