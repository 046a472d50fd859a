package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"blobfeed/internal/testing/feedsim"
)

// Retention takes chunks away, before or after they were delivered: what is left is compared, and it is said
// what was not.
func TestVerifyWhereChunksAreGone(t *testing.T) {
	t.Parallel()
	for _, delivery := range []string{"before", "after"} {
		t.Run(delivery, func(t *testing.T) {
			dir := t.TempDir()
			spec := feedsim.Spec{Segments: 2, EventsPerSegment: 90, BlockEvents: 10, ChunksPerShard: 3}
			if err := feedsim.Write(t.Context(), feedsim.Dir(dir), spec, nil); err != nil {
				t.Fatal(err)
			}
			retain := func() {
				for _, chunk := range []string{"0000/00000", "0000/00001", "0100/00001"} {
					if err := os.Remove(filepath.Join(dir, "log/00/2026/01/01", chunk+".avro")); err != nil {
						t.Fatal(err)
					}
				}
			}
			records, older := 180, 90
			if delivery == "after" {
				retain()
				records, older = 90, 0
			}
			delivered(t, dir, "ON_GAP=continue")
			if delivery == "before" {
				retain()
			}
			code, stdout, stderr := call(t, "verify", "--feed", "--output", "json")
			r, _ := statusFrom(t, stdout)
			if code != exitOK || r.Records != int64(records) || r.Feed.Required != 90 {
				t.Fatalf("exit code %d: %s%s", code, stdout, stderr)
			}
			notes := strings.Join(r.Notes, "\n")
			if !strings.Contains(notes, "in 2 places") ||
				strings.Contains(notes, "history was lost") != (delivery == "after") ||
				strings.Contains(notes, fmt.Sprintf("not compared: %d records", older)) != (older > 0) {
				t.Errorf("it says %q", notes)
			}
		})
	}
}
