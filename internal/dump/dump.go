// Package dump prints what others keep in files and topics: segments, chunks and events of a feed, and the state of a
// bridge.
package dump

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Dumper prints documents to Out: as JSON, one a line, or as text.
type Dumper struct {
	Out  io.Writer
	JSON bool
}

// print writes a document as JSON, or as text.
func (d Dumper) print(doc any, format string, args ...any) error {
	if !d.JSON {
		for i, a := range args {
			if text, ok := a.(string); ok {
				args[i] = plain.Line(text) // a line break in a name must not forge a line
			}
		}
		_, err := fmt.Fprintf(d.Out, format+"\n", args...)
		return err
	}
	return json.NewEncoder(d.Out).Encode(doc)
}

// State prints what a bridge keeps in its state topic.
func (d Dumper) State(s *offsets.State) error {
	if f := s.Frontier; f != nil {
		if err := d.print(map[string]any{"key": "frontier", "value": f},
			"frontier  completed %s  current %s  resolved %s  feed %s  by %s at %s",
			cmp.Or(f.Completed.String(), "-"), cmp.Or(f.Current.String(), "-"), cmp.Or(f.Resolved, "-"),
			f.Feed, f.Owner, f.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	for lease, cur := range s.Cursors {
		if cur == nil {
			continue
		}
		where := "as far as the frontier"
		if !cur.Over(s.Frontier) {
			where = fmt.Sprintf("segment %s  done %-5t ", cur.Segment, cur.Done)
			for _, name := range slices.Sorted(maps.Keys(cur.Shards)) {
				where += fmt.Sprintf(" %s:%s", name, cur.Shards[name])
			}
		}
		doc := map[string]any{"key": "cursor", "lease": lease, "owner": s.Owners[lease], "value": cur}
		if err := d.print(doc, "lease %-3d %s  events %d  by %s at %s",
			lease, where, cur.Counts.Read, s.Owners[lease], cur.Time.Format(time.RFC3339)); err != nil {
			return err
		}
	}
	return nil
}

// ParseChunk parses the name of a chunk, log/SS/YYYY/MM/DD/HHMM/NNNNN.avro, as the position of its beginning.
func ParseChunk(name string) (p source.Position, err error) {
	f := strings.Split(strings.TrimSuffix(name, ".avro"), "/")
	if len(f) == 7 {
		var errs [3]error
		p.Segment, errs[0] = source.ParseSegment(strings.Join(f[2:6], "/"))
		p.Shard, errs[1] = strconv.Atoi(f[1])
		p.Chunk, errs[2] = strconv.Atoi(f[6])
		err = errors.Join(errs[:]...)
	}
	if len(f) != 7 || err != nil {
		return p, fmt.Errorf("invalid chunk %s: want log/SS/YYYY/MM/DD/HHMM/NNNNN.avro", name)
	}
	return p, nil
}

// shardPosition is where a reader of the shard of p begins.
func shardPosition(p source.Position) source.ShardPosition {
	return source.ShardPosition{Chunk: p.Chunk, Offset: p.Offset}
}
