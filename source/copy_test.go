package source_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"blobfeed/internal/testing/feedsim"
	"blobfeed/source"
)

// A copy that lacks what every feed has is an error, and what a feed may lack is said. The service itself may have
// deleted it.
func TestIncompleteCopy(t *testing.T) {
	begins := func(prefix string) func(string) bool {
		return func(name string) bool { return strings.HasPrefix(name, prefix) }
	}
	for name, tc := range map[string]struct {
		missing func(name string) bool
		open    bool   // the segment
		copied  string // the error of a copy
		lacks   string // of a copy
		service string // what the service's feed lacks
	}{
		"nothing":  {missing: begins("-")},
		"meta":     {missing: begins("meta/"), copied: "meta/segments.json is missing"},
		"idx":      {missing: begins("idx/"), copied: "segment 2026/01/01/0100 may be read, and idx/segments/ has no segment"},
		"log":      {missing: begins("log/"), copied: "none of the 3 shards", service: "none of the 3 shards"},
		"a shard":  {missing: begins("log/01/"), lacks: "the manifest names log/01/2026/01/01/0000/"},
		"open log": {missing: begins("log/"), open: true},
	} {
		m := &memory{blobs: map[string][]byte{}}
		spec := feedsim.Spec{Shards: 3, EventsPerSegment: 100, Segments: 2, LeaveOpen: true}
		if tc.open {
			spec.Segments = 1
		}
		if err := feedsim.Write(t.Context(), sink{m}, spec, nil); err != nil {
			t.Fatal(err)
		}
		for name := range m.blobs {
			if tc.missing(name) {
				delete(m.blobs, name)
			}
		}
		for _, copied := range []bool{true, false} {
			lacks, err := firstSegment(t, source.New(m, source.Options{Copy: copied}))
			want, wantErr := tc.service, ""
			if copied {
				want, wantErr = tc.lacks, tc.copied
			}
			if (err != nil) != (wantErr != "") || err != nil && (!errors.Is(err, source.ErrIncomplete) ||
				!strings.Contains(err.Error(), wantErr) || !strings.Contains(err.Error(), "copy the container")) {
				t.Errorf("without %s, copied %t: error %v, want %q", name, copied, err, wantErr)
			}
			if err == nil && ((lacks != "") != (want != "") || !strings.Contains(lacks, want)) {
				t.Errorf("without %s, copied %t: lacks %q, want %q", name, copied, lacks, want)
			}
		}
	}
}

// firstSegment lists the first segment, and returns what it may lack.
func firstSegment(t *testing.T, feed *source.Feed) (lacks string, err error) {
	for seg, err := range feed.Segments(t.Context(), source.Segment{}) {
		if err != nil {
			return "", err
		}
		m, err := feed.Manifest(t.Context(), seg)
		if err != nil {
			return "", err
		}
		for _, n := range m.Shards {
			r := feed.Shard(m, n, source.ShardPosition{})
			if err := r.Poll(t.Context(), m.Finalized); err != nil {
				return "", err
			}
			if r.Lacks() != "" {
				lacks = r.Lacks()
			}
		}
		break
	}
	return lacks, nil
}

// sink is a feedsim.Sink into memory.
type sink struct{ *memory }

func (s sink) Put(_ context.Context, name string, data []byte) error {
	s.blobs[name] = bytes.Clone(data)
	return nil
}

func (s sink) Append(_ context.Context, name string, data []byte) error {
	s.blobs[name] = append(s.blobs[name], data...)
	return nil
}
