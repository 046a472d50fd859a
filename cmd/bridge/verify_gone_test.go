package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"

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

// Retention deletes all records, and what is left is the end of a transaction, or not even that: of all partitions, or
// of one.
func TestVerifyWhereRecordsAreGone(t *testing.T) {
	t.Parallel()
	for _, settings := range []string{"RESOLVED_TO=inline", "RESOLVED_TO=topic"} {
		t.Run(settings, func(t *testing.T) {
			cl := delivered(t, "../../testdata/real-2020", settings)
			adm := kadm.NewClient(cl)
			names := []string{written}
			if settings == "RESOLVED_TO=topic" {
				names = append(names, written+".resolved")
			}
			for _, c := range []struct {
				partitions int32
				left       int64
				code       int
				says       string
			}{
				{1, 1, exitOK, "because records are deleted from the topic: all of partition 0"},
				{1, 0, exitOK, "because records are deleted from the topic: all of partition 0"},
				{3, 1, exitFailed, "topic changes has no records: nothing is checked"},
				{3, 0, exitFailed, "topic changes is empty: nothing is checked"},
			} {
				ends, err := adm.ListEndOffsets(t.Context(), names...)
				if err != nil {
					t.Fatal(err)
				}
				at := ends.Offsets()
				at.KeepFunc(func(o kadm.Offset) bool { return o.Partition < c.partitions })
				for _, partitions := range at {
					for p, o := range partitions {
						o.At -= c.left
						partitions[p] = o
					}
				}
				if _, err := adm.DeleteRecords(t.Context(), at); err != nil {
					t.Fatal(err)
				}
				code, stdout, stderr := call(t, "verify", "--feed")
				if code != c.code || !strings.Contains(stdout+stderr, c.says) {
					t.Errorf("%d left on %d partitions: exit code %d, want %d and %q: %s%s", c.left, c.partitions, code,
						c.code, c.says, stdout, stderr)
				}
			}
		})
	}
}
