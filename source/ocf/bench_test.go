package ocf

import (
	"fmt"
	"strings"
	"testing"

	// Archived, advisories GO-2026-5046, -5047, -5048 on hostile input: see oracle_test.go.
	"github.com/hamba/avro/v2"
)

// sample returns 20 blocks of 500 events of the V5 shape, about 700 bytes each.
func sample(b *testing.B, codec string) (file []byte, events int) {
	o := newOracle(b, schemaText(b, "v5"))
	const blob = "/blobServices/default/containers/photos/blobs/2026/11/21/camera-%d/image-%06d.jpg"
	text := func(s string) any { return map[string]any{"string": s} }
	var blocks [][]byte
	for i := range 20 {
		var data strings.Builder
		for j := range 500 {
			n := i*500 + j
			e := map[string]any{
				"schemaVersion": int64(5),
				"topic":         "/subscriptions/ba45b233-e2ef-4169-8808-49eb0d8eba0d/resourceGroups/group/providers/Microsoft.Storage/storageAccounts/account",
				"subject":       fmt.Sprintf(blob, n%7, n), "eventType": "BlobCreated",
				"eventTime": fmt.Sprintf("2026-11-21T03:10:%02d.%07dZ", n%60, n),
				"id":        fmt.Sprintf("e93c3b13-901e-007a-4eb5-%012x", n),
				"data": map[string]any{
					"api": "PutBlob", "clientRequestId": fmt.Sprintf("6df39f62-cf04-4a57-be15-%012x", n),
					"requestId": fmt.Sprintf("e93c3b13-901e-007a-4eb5-%012x", n),
					"etag":      fmt.Sprintf("0x8D79ACC%08X", n), "contentType": "image/jpeg",
					"contentLength": int64(1024 + n), "blobType": "BlockBlob",
					"blobVersion": text("2026-11-21T03:10:00.0000000Z"), "containerVersion": nil,
					"blobTier": map[string]any{"Microsoft.Storage.BlobTierEnum": "Hot"},
					"url": fmt.Sprintf(
						"https://account.blob.core.windows.net/photos/2026/11/21/camera-%d/image-%06d.jpg",
						n%7,
						n,
					), "sequencer": fmt.Sprintf("%048x", n),
					"previousInfo": map[string]any{"map": map[string]any{"WasBlobSoftDeleted": "false",
						"LastVersion": "2026-11-20T03:10:00.0000000Z"}},
					"snapshot": nil, "blobPropertiesUpdated": nil, "asyncOperationInfo": nil, "blobTagsUpdated": nil,
					"restorePointMarker": nil,
					"storageDiagnostics": map[string]any{"bid": "bc87e831-1006-0029-00b5-cc412b000000",
						"sid": "d89e7efe-48db-9a66-9a6b-5e09a0be19f4", "seq": "(659,1138856,5827359,0)"},
				},
			}
			data.Write(o.encode(b, e))
			events++
		}
		d := data.String()
		if codec == "deflate" {
			d = deflated(b, d)
		}
		blocks = append(blocks, block(marker, 500, d))
	}
	return container(codec, o.text, blocks...), events
}

// blocks of the sample, framed.
func framed(b *testing.B) (h *Header, blocks []Block, events int) {
	file, events := sample(b, "null")
	h, err := ParseHeader(file, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	if blocks, _, err = read(file); err != nil {
		b.Fatal(err)
	}
	return h, blocks, events
}

// BenchmarkDecode decodes blocks that are framed already, as BenchmarkDecodeHamba does.
func BenchmarkDecode(b *testing.B) {
	h, blocks, events := framed(b)
	var evs []Event
	var err error
	b.ReportAllocs()
	for b.Loop() {
		for _, blk := range blocks {
			if evs, err = h.Events(blk, evs); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
}

// readAll reads a whole file: framing with its copy, decompressing, decoding.
func readAll(b *testing.B, codec string) {
	file, events := sample(b, codec)
	h, err := ParseHeader(file, Limits{})
	if err != nil {
		b.Fatal(err)
	}
	var evs []Event
	b.ReportAllocs()
	for b.Loop() {
		for off := h.Size; off < int64(len(file)); {
			blk, err := h.ReadBlock(file[off:], off)
			if err == nil {
				evs, err = h.Events(blk, evs)
			}
			if err != nil {
				b.Fatal(err)
			}
			off = blk.End
		}
	}
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
}

func BenchmarkDecodeFile(b *testing.B)    { readAll(b, "null") }
func BenchmarkDecodeDeflate(b *testing.B) { readAll(b, "deflate") }

type hambaEvent struct {
	SchemaVersion int64  `avro:"schemaVersion"`
	Topic         string `avro:"topic"`
	Subject       string `avro:"subject"`
	EventType     string `avro:"eventType"`
	EventTime     string `avro:"eventTime"`
	ID            string `avro:"id"`
	Data          struct {
		API                   string             `avro:"api"`
		ClientRequestID       string             `avro:"clientRequestId"`
		RequestID             string             `avro:"requestId"`
		ETag                  string             `avro:"etag"`
		ContentType           string             `avro:"contentType"`
		ContentLength         int64              `avro:"contentLength"`
		BlobType              string             `avro:"blobType"`
		BlobVersion           *string            `avro:"blobVersion"`
		ContainerVersion      *string            `avro:"containerVersion"`
		BlobTier              *string            `avro:"blobTier"`
		URL                   string             `avro:"url"`
		Sequencer             string             `avro:"sequencer"`
		PreviousInfo          *map[string]string `avro:"previousInfo"`
		Snapshot              *string            `avro:"snapshot"`
		BlobPropertiesUpdated *map[string]struct {
			Current  string `avro:"current"`
			Previous string `avro:"previous"`
		} `avro:"blobPropertiesUpdated"`
		AsyncOperationInfo *map[string]string            `avro:"asyncOperationInfo"`
		BlobTagsUpdated    *map[string]map[string]string `avro:"blobTagsUpdated"`
		RestorePointMarker *map[string]string            `avro:"restorePointMarker"`
	} `avro:"data"`
}

// BenchmarkDecodeHamba decodes the same blocks into structs, and gets them framed already.
func BenchmarkDecodeHamba(b *testing.B) {
	_, blocks, events := framed(b)
	schema := newOracle(b, schemaText(b, "v5")).schema
	r := avro.NewReader(nil, 0)
	var data [][]byte
	for _, blk := range blocks {
		data = append(data, []byte(blk.Data))
	}
	b.ReportAllocs()
	for b.Loop() {
		for i, blk := range blocks {
			r.Reset(data[i])
			for range blk.Count {
				var e hambaEvent
				r.ReadVal(schema, &e)
				if r.Error != nil {
					b.Fatal(r.Error)
				}
			}
		}
	}
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
}
