package ocf

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"maps"
	"math/rand/v2"
	"os"
	"reflect"
	"slices"
	"testing"
)

// The real chunks give what another reader decoded from them, at the same offsets and indexes.
func TestRealChunks(t *testing.T) {
	type want struct {
		File                                     string `json:"_file"`
		BlockOffset                              int64  `json:"_blockOffset"`
		EventIndex                               int    `json:"_eventIndex"`
		SchemaVersion                            int64
		Topic, Subject, EventType, EventTime, ID string
		Data                                     struct {
			API, ClientRequestID, RequestID, ETag, ContentType string
			ContentLength                                      int64
			BlobType, URL, Sequencer                           string
			Snapshot, ContainerVersion, BlobVersion, BlobTier  *string
		}
	}
	f, err := os.Open(feed + "events.jsonl")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	wants := map[string][]want{}
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 1<<20)
	total := 0
	for lines.Scan() {
		var w want
		if err := json.Unmarshal(lines.Bytes(), &w); err != nil {
			t.Fatal(err)
		}
		wants[w.File] = append(wants[w.File], w)
		total++
	}
	if total != 717 {
		t.Fatalf("%d events to compare with", total)
	}
	text := func(s *string) string {
		if s == nil {
			return ""
		}
		return *s
	}
	for name, b := range chunks(t) {
		h, err := ParseHeader(b, Limits{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		ws := wants[name]
		for off := h.Size; off < int64(len(b)); {
			blk, err := h.ReadBlock(b[off:], off)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			evs, err := h.Events(blk, nil)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for i, e := range evs {
				if len(ws) == 0 {
					t.Fatalf("%s has more events than wanted", name)
				}
				w := ws[0]
				ws = ws[1:]
				d := w.Data
				if len(e.Extra)+len(e.PreviousInfo)+len(e.AsyncOperationInfo)+len(e.RestorePointMarker)+
					len(e.BlobPropertiesUpdated)+len(e.BlobTagsUpdated) > 0 || !e.HasContentLength {
					// none of these is in the real files
					t.Fatalf("%s, block %d, event %d: %+v", name, blk.Offset, i, e)
				}
				got := []any{blk.Offset, i, e.SchemaVersion, e.Topic, e.Subject, e.EventType, e.EventTime, e.ID, e.API,
					e.ClientRequestID, e.RequestID, e.ETag,
					e.ContentType, e.ContentLength, e.BlobType, e.URL, e.Sequencer, e.Snapshot, e.ContainerVersion,
					e.BlobVersion, e.BlobTier}
				want := []any{w.BlockOffset, w.EventIndex, w.SchemaVersion, w.Topic, w.Subject, w.EventType,
					w.EventTime, w.ID, d.API, d.ClientRequestID, d.RequestID, d.ETag,
					d.ContentType, d.ContentLength, d.BlobType, d.URL, d.Sequencer, text(d.Snapshot),
					text(d.ContainerVersion), text(d.BlobVersion), text(d.BlobTier)}
				for j := range got {
					if got[j] != want[j] {
						t.Fatalf("%s, block %d, event %d: field %d is %v, want %v", name, blk.Offset, i, j, got[j],
							want[j])
					}
				}
			}
			off = blk.End
		}
		if len(ws) > 0 {
			t.Errorf("%s lacks %d events", name, len(ws))
		}
	}
}

// Wherever a file is cut, its whole blocks are read, and the rest is short, not corrupt.
func TestTruncation(t *testing.T) {
	for name, b := range chunks(t) {
		h, err := ParseHeader(b, Limits{})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for n := range h.Size {
			if _, err := ParseHeader(b[:n], Limits{}); !errors.Is(err, ErrShort) {
				t.Fatalf("%s cut at %d: %v", name, n, err)
			}
		}
		for off := h.Size; off < int64(len(b)); {
			whole, err := h.ReadBlock(b[off:], off)
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			for n := off; n < whole.End; n++ {
				if _, err := h.ReadBlock(b[off:n], off); !errors.Is(err, ErrShort) {
					t.Fatalf("%s cut at %d: %v", name, n, err)
				}
			}
			if blk, err := h.ReadBlock(b[off:whole.End], off); err != nil || blk != whole {
				t.Fatalf("%s cut at %d, after a block: %v", name, whole.End, err)
			}
			off = whole.End
		}
	}
}

// A damaged file gives the right events up to the damage, then an error that names an offset, and never panics.
func TestMutations(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	all := chunks(t)
	for _, name := range slices.Sorted(maps.Keys(all)) {
		orig := all[name]
		h, err := ParseHeader(orig, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		wantBlocks, wantEvents, err := read(orig)
		if err != nil {
			t.Fatal(err)
		}
		for range 200 {
			b := bytes.Clone(orig)
			at := rng.IntN(len(b))
			b[at] ^= byte(1 + rng.IntN(255))
			if rng.IntN(4) == 0 {
				b = b[:at+rng.IntN(len(b)-at)] // and cut behind it
			}
			blocks, events, err := read(b)
			var corrupt *CorruptError
			if err != nil && !errors.As(err, &corrupt) && !errors.Is(err, ErrShort) {
				t.Fatalf("%s, byte %d: %v", name, at, err)
			}
			if int64(at) < h.Size {
				continue // the schema may read otherwise now, and the sync marker differ
			}
			right := 0 // events of the blocks before the damage
			for i, blk := range wantBlocks {
				if blk.End > int64(min(at, len(b))) {
					// The damage may look like data, or like the end; where it shows it is this block's.
					if corrupt != nil && corrupt.Offset != blk.Offset {
						t.Fatalf("%s, byte %d of block %d: %v", name, at, blk.Offset, err)
					}
					break
				}
				if len(blocks) <= i || blocks[i] != blk {
					t.Fatalf("%s, byte %d: block %d before the damage differs", name, at, blk.Offset)
				}
				right += blk.Count
			}
			if len(events) < right || right > 0 && !reflect.DeepEqual(events[:right], wantEvents[:right]) {
				t.Fatalf("%s, byte %d: the %d events before the damage differ", name, at, right)
			}
		}
	}
}

func TestHostile(t *testing.T) {
	sync := bytes.Repeat([]byte{7}, syncSize)
	head := append([]byte("Obj\x01\x02\x16avro.schema"), encode(int64(len(tiny)))...)
	head = append(append(append(head, tiny...), 0), sync...)
	min64 := []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x01}
	for name, c := range map[string]struct {
		b     []byte
		short bool
	}{
		"negative count":       {b: append(encode(-1), encode(4)...)},
		"smallest count":       {b: append(bytes.Clone(min64), encode(4)...)},
		"negative size":        {b: append(encode(1), encode(-5)...)},
		"huge size":            {b: append(encode(1), encode(1<<40)...)},
		"long varint":          {b: bytes.Repeat([]byte{0x80}, 11)},
		"overflowing varint":   {b: append(bytes.Repeat([]byte{0xff}, 9), 0x02)},
		"count above the size": {b: block(sync, 1<<40, "\x02a")},
		"wrong sync":           {b: append(append(encode(1), encode(2)...), "\x02a0123456789abcdef"...)},
		"huge string":          {b: block(sync, 1, string(encode(1<<40))+"a")},
		"negative string":      {b: block(sync, 1, string(encode(-3))+"a")},
		"trailing bytes":       {b: block(sync, 1, "\x02a\x00")},
		"missing record":       {b: block(sync, 2, "\x02a")},
		"in the middle":        {b: block(sync, 1, "\x02a")[:3], short: true},
	} {
		_, _, err := read(append(bytes.Clone(head), c.b...))
		var corrupt *CorruptError
		if c.short != errors.Is(err, ErrShort) || !c.short && (!errors.As(err, &corrupt) ||
			corrupt.Offset != int64(len(head))) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, evs, err := read(append(bytes.Clone(head), block(sync, 1, "\x02a")...)); err != nil || len(evs) != 1 ||
		evs[0].ID != "a" {
		t.Errorf("the good one: %v, %v", evs, err)
	}
	for name, b := range map[string][]byte{
		"magic":           []byte("Obj\x02"),
		"huge metadata":   append([]byte("Obj\x01"), encode(1<<50)...),
		"metadata length": append([]byte("Obj\x01\x02"), encode(1<<50)...),
		"codec": append(append([]byte("Obj\x01\x04\x14avro.codec\x0csnappy\x16avro.schema"),
			encode(int64(len(tiny)))...), append([]byte(tiny+"\x00"), sync...)...),
		"schema": append([]byte("Obj\x01\x02\x16avro.schema\x04{}\x00"), sync...),
	} {
		var corrupt *CorruptError
		if _, err := ParseHeader(b, Limits{}); !errors.As(err, &corrupt) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// FuzzParse: run it with -fuzzminimizetime 1x, as minimizing the real chunks takes all the time otherwise.
func FuzzParse(f *testing.F) {
	for _, b := range chunks(f) {
		f.Add(b[:min(len(b), 6000)])
	}
	f.Add(container("deflate", tiny, block(marker, 2, deflated(f, "\x02a\x02b"))))
	f.Add(container("null", record(``, `{"name":"x","type":`+nested(12)+`}`), block(marker, 1, "a")))
	limits := Limits{Header: 1 << 16, Block: 1 << 20, Decompressed: 1 << 20}
	f.Fuzz(func(t *testing.T, b []byte) {
		var err error
		blocks := uint64(1)
		grown := allocated(func() {
			var h *Header
			if h, err = ParseHeader(b, limits); err != nil {
				return
			}
			var evs []Event
			for off := h.Size; off < int64(len(b)) && err == nil; {
				var blk Block
				if blk, err = h.ReadBlock(b[off:], off); err == nil {
					evs, err = h.Events(blk, evs)
					off = blk.End
				}
				blocks++
			}
		})
		var corrupt *CorruptError
		if err != nil && !errors.Is(err, ErrShort) && !errors.As(err, &corrupt) {
			t.Errorf("error of no kind: %v", err)
		}
		// Each block takes its data, inflated into a buffer that doubles, and as much again for its events, twice as
		// slices grow.
		if grown > (blocks+8)*8*uint64(limits.Decompressed) {
			t.Errorf("%d bytes allocated for %d", grown, len(b))
		}
	})
}

func TestDecodeAllocatesOncePerBlock(t *testing.T) {
	for name, b := range chunks(t) {
		h, err := ParseHeader(b, Limits{})
		if err != nil {
			t.Fatal(err)
		}
		blk, err := h.ReadBlock(b[h.Size:], h.Size)
		if err != nil {
			t.Fatal(err)
		}
		evs, err := h.Events(blk, nil)
		if err != nil {
			t.Fatal(err)
		}
		if n := testing.AllocsPerRun(20, func() { evs, err = h.Events(blk, evs) }); n > 1 || err != nil {
			t.Errorf("%s: %v allocations for %d events, %v", name, n, len(evs), err)
		}
	}
}
