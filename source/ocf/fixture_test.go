package ocf

import (
	"os"
	"path/filepath"
	"testing"
)

const feed = "../../testdata/real-2020/"

// chunks returns the real chunks, by their name in the feed.
func chunks(t testing.TB) map[string][]byte {
	t.Helper()
	files, err := filepath.Glob(feed + "log/*/*/*/*/*/*.avro")
	if err != nil || len(files) == 0 {
		t.Fatalf("no chunks: %v", err)
	}
	all := map[string][]byte{}
	for _, f := range files {
		b, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		name, err := filepath.Rel(feed, f)
		if err != nil {
			t.Fatal(err)
		}
		all[name] = b
	}
	return all
}

// read decodes a whole file: blocks, their events, and how it ended.
func read(b []byte) (blocks []Block, events []Event, err error) {
	h, err := ParseHeader(b, Limits{})
	if err != nil {
		return nil, nil, err
	}
	for off := h.Size; off < int64(len(b)); {
		blk, err := h.ReadBlock(b[off:], off)
		if err != nil {
			return blocks, events, err
		}
		evs, err := h.Events(blk, nil)
		events = append(events, evs...)
		if err != nil {
			return blocks, events, err
		}
		blocks = append(blocks, blk)
		off = blk.End
	}
	return blocks, events, nil
}

const tiny = `{"type":"record","name":"R","fields":[{"name":"id","type":"string"}]}`

// encode writes a zigzag varint.
func encode(v int64) []byte {
	u := uint64(v<<1) ^ uint64(v>>63)
	var b []byte
	for ; u >= 0x80; u >>= 7 {
		b = append(b, byte(u)|0x80)
	}
	return append(b, byte(u))
}

func block(sync []byte, count int64, data string) []byte {
	b := append(encode(count), encode(int64(len(data)))...)
	return append(append(b, data...), sync...)
}

// Decode fills ev with the record at the beginning of data, and returns what follows.
func (p *Plan) Decode(data string, ev *Event) (rest string, err error) {
	r := newReader(data, defaults.Decompressed)
	err = p.decode(&r, ev)
	return r.rest(), err
}
