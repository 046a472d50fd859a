package logging

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"
)

// One event's error can be as long as its block: the log gets its begin, and what repeats is kept as short.
func TestLongTexts(t *testing.T) {
	var out bytes.Buffer
	l := Limit(slog.NewJSONHandler(&out, nil), time.Minute, time.Now)
	log, long := slog.New(l), strings.Repeat("x", 52<<20)
	for range 3 {
		log.Warn("trying again", "lease", 1, "error", errors.New(long), "blob", long)
	}
	log.Info("progress", "segment", long)
	for id := range l.shared.seen {
		if len(id) > 8<<10 {
			t.Errorf("%d bytes are kept to know what repeats", len(id))
		}
	}
	l.Flush(t.Context(), true)
	if n := out.Len(); n > 20<<10 || strings.Count(out.String(), "\n") != 3 || !strings.Contains(out.String(),
		`"lease":1`) {
		t.Errorf("%d bytes of log: %.200s", n, out.String())
	}
}
