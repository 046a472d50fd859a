package pipeline

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"blobfeed/source"
)

// A feed that makes up types fills neither the memory nor the log (I9).
func TestUnknownTypesAreBounded(t *testing.T) {
	var out bytes.Buffer
	log := slog.New(slog.NewTextHandler(&out, nil))
	var u unknown
	for range 2 {
		for i := range 3 * maxTypes {
			u.warn(log, fmt.Sprintf("Type%d", i), source.Segment{})
		}
	}
	if lines := strings.Count(out.String(), "\n"); lines != maxTypes || len(u.warned) != maxTypes {
		t.Errorf("%d warnings, %d types kept, want %d", lines, len(u.warned), maxTypes)
	}
}
