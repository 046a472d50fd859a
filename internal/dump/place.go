package dump

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"blobfeed/source"
)

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
