package feedsim

import (
	"context"
	"fmt"
	"strings"
)

const (
	pathLayout   = "2006/01/02/1504"
	manifestTime = "2006-01-02T15:04:05.000Z"
)

// manifest writes a segment's manifest. Its lastModifiedTime is that of the segment's first minute and stays so, as in
// real ones: only the blob's own tells that it was rewritten.
func (f *Feed) manifest(ctx context.Context, seg *segment, status string) error {
	var paths []string
	for i := range seg.listed {
		if i < len(seg.shards) && seg.shards[i].late {
			continue
		}
		paths = append(paths, `"$blobchangefeed/`+shardDir(i, seg.name)+`"`)
	}
	schema := f.versions[0].number
	if len(seg.shards) > 0 {
		schema = seg.shards[0].version.number
	}
	begin := seg.begin.Format(manifestTime)
	return f.sink.Put(ctx, "idx/segments/"+seg.name+"/meta.json", fmt.Appendf(nil,
		`{"version":0,"begin":"%s","intervalSecs":%d,"status":"%s","config":{"version":1,`+
			`"configVersionEtag":"0x8dad189bd5c84f6","numShards":%d,"recordsFormat":"avro","formatSchemaVersion":%d,`+
			`"shardDistFnVersion":1,"streamAppendType":3},"chunkFilePaths":[%s],"storageDiagnostics":{"version":0,`+
			`"lastModifiedTime":"%s","data":{"aid":"77cb7abe-0006-0092-0003-36fb89000000"}}}`,
		begin, int(f.spec.Interval.Seconds()), status, seg.listed, schema, strings.Join(paths, ","), begin))
}

// segments writes meta/segments.json. lastConsumable is the newest segment, though it may still be Publishing; lfz,
// which is not documented, the last finalized one.
func (f *Feed) segments(ctx context.Context) error {
	lfz := ""
	if f.finalized != "" {
		lfz = `,"lfz":"` + f.finalized + `"`
	}
	begin := f.current.begin.Format(manifestTime)
	return f.sink.Put(ctx, "meta/segments.json", fmt.Appendf(nil,
		`{"version":0,"lastConsumable":"%s","storageDiagnostics":{"version":0,"lastModifiedTime":"%s",`+
			`"data":{"aid":"f7d1e86f-5006-0065-0058-38d11b063f9a"%s}}}`,
		begin, begin, lfz))
}
