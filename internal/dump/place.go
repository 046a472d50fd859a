package dump

import (
	"errors"
	"fmt"
	"strconv"
	"strings"

	"blobfeed/envelope"
	"blobfeed/source"
)

// Place is where something is in the feed.
type Place struct {
	Segment source.Segment
	Shard   int
	At      source.ShardPosition

	index int    // of the event in its block
	text  string // as it was given
}

// ParseChunk parses the name of a chunk: log/SS/YYYY/MM/DD/HHMM/NNNNN.avro.
func ParseChunk(name string) (p Place, err error) {
	f := strings.Split(strings.TrimSuffix(name, ".avro"), "/")
	if len(f) == 7 {
		var errs [3]error
		p.Segment, errs[0] = source.ParseSegment(strings.Join(f[2:6], "/"))
		p.Shard, errs[1] = strconv.Atoi(f[1])
		p.At.Chunk, errs[2] = strconv.Atoi(f[6])
		err = errors.Join(errs[:]...)
	}
	if len(f) != 7 || err != nil {
		return p, fmt.Errorf("invalid chunk %s: want log/SS/YYYY/MM/DD/HHMM/NNNNN.avro", name)
	}
	return p, nil
}

// ParsePosition parses the position of an event, as the header "position" of its record has it.
func ParsePosition(text string) (Place, error) {
	at, err := envelope.ParsePosition(text)
	if err != nil {
		return Place{}, err
	}
	p := Place{At: source.ShardPosition{Chunk: at.Chunk, Offset: at.Offset}, index: at.Index, text: text}
	if p.Segment, err = source.ParseSegment(at.Segment); err != nil {
		return p, err
	}
	if p.Shard, err = strconv.Atoi(at.Shard); err != nil {
		return p, fmt.Errorf("invalid position %s: shard %q is not a number", text, at.Shard)
	}
	return p, nil
}
