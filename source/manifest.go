package source

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Manifest is what a segment's meta.json says.
type Manifest struct {
	Segment   Segment
	Begin     time.Time
	Interval  time.Duration
	Finalized bool           // anything but "Finalized" is open
	Shards    []int          // ascending
	Paths     map[int]string // prefix of each shard's chunks, with a slash at its end
}

// maxName is the longest name that a blob may have.
const maxName = 1024

// maxShards bounds the readers of a segment (I9). The service numbers shards with two digits; real accounts have up to
// three.
const maxShards = 1000

// Manifest reads the manifest of seg.
func (f *Feed) Manifest(ctx context.Context, seg Segment) (Manifest, error) {
	name := segmentsRoot + seg.String() + manifestName
	var doc struct {
		Begin    *time.Time `json:"begin"`
		Interval int64      `json:"intervalSecs"`
		Status   *string    `json:"status"`
		Paths    *[]string  `json:"chunkFilePaths"`
	}
	if err := f.document(ctx, name, &doc); err != nil {
		return Manifest{}, err
	}
	for field, missing := range map[string]bool{"begin": doc.Begin == nil, "status": doc.Status == nil,
		"chunkFilePaths": doc.Paths == nil} {
		if missing {
			return Manifest{}, fmt.Errorf("parsing %s: %s is missing", name, field)
		}
	}
	if doc.Interval < 0 || doc.Interval > 366*24*3600 {
		return Manifest{}, fmt.Errorf("parsing %s: intervalSecs is %d", name, doc.Interval)
	}
	m := Manifest{
		Segment: seg, Begin: doc.Begin.UTC(), Interval: time.Duration(doc.Interval) * time.Second,
		Finalized: *doc.Status == "Finalized", Paths: map[int]string{},
	}
	if n := len(*doc.Paths); n > maxShards {
		return Manifest{}, fmt.Errorf("parsing %s: chunkFilePaths has %d entries; the limit is %d", name, n, maxShards)
	}
	for _, path := range *doc.Paths {
		path = strings.TrimPrefix(path, container)
		parts := strings.Split(path, "/")
		if len(parts) < 3 || parts[0] != "log" || !digits(parts[1]) || parts[len(parts)-1] != "" ||
			len(path) > maxName {
			return Manifest{}, fmt.Errorf("parsing %s: chunkFilePaths has %.100q, want log/<shard>/…/", name, path)
		}
		shard, err := strconv.Atoi(parts[1])
		if err != nil {
			return Manifest{}, fmt.Errorf("parsing %s: shard %.20q is out of range", name, parts[1])
		}
		if _, twice := m.Paths[shard]; twice {
			return Manifest{}, fmt.Errorf("parsing %s: shard %s is in chunkFilePaths twice", name, ShardName(shard))
		}
		m.Paths[shard] = path
		m.Shards = append(m.Shards, shard)
	}
	slices.Sort(m.Shards)
	return m, nil
}
