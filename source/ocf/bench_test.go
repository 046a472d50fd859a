package ocf

import (
	"testing"

	// hamba is archived and has open advisories on hostile input (GO-2026-5046, -5047, -5048): it is an oracle and a
	// yardstick on bytes of our own here, and nothing else imports it.
	"github.com/hamba/avro/v2"
)

// largest returns the blocks of the real chunk with most events.
func largest(b *testing.B) (*Header, []Block, int) {
	var h *Header
	var blocks []Block
	most := 0
	for _, file := range chunks(b) {
		bs, evs, err := read(file)
		if err != nil {
			b.Fatal(err)
		}
		if len(evs) > most {
			most, blocks = len(evs), bs
			if h, err = ParseHeader(file, Limits{}); err != nil {
				b.Fatal(err)
			}
		}
	}
	return h, blocks, most
}

func BenchmarkDecode(b *testing.B) {
	h, blocks, events := largest(b)
	var evs []Event
	var err error
	for b.Loop() {
		for _, blk := range blocks {
			if evs, err = h.Events(blk, evs); err != nil {
				b.Fatal(err)
			}
		}
	}
	b.ReportMetric(float64(events*b.N)/b.Elapsed().Seconds(), "events/s")
}

type hambaEvent struct {
	SchemaVersion int64  `avro:"schemaVersion"`
	Topic         string `avro:"topic"`
	Subject       string `avro:"subject"`
	EventType     string `avro:"eventType"`
	EventTime     string `avro:"eventTime"`
	ID            string `avro:"id"`
	Data          struct {
		API             string `avro:"api"`
		ClientRequestID string `avro:"clientRequestId"`
		RequestID       string `avro:"requestId"`
		ETag            string `avro:"etag"`
		ContentType     string `avro:"contentType"`
		ContentLength   int64  `avro:"contentLength"`
		BlobType        string `avro:"blobType"`
		URL             string `avro:"url"`
		Sequencer       string `avro:"sequencer"`
	} `avro:"data"`
}

func BenchmarkDecodeHamba(b *testing.B) {
	h, blocks, events := largest(b)
	schema, err := avro.Parse(h.Schema)
	if err != nil {
		b.Fatal(err)
	}
	r := avro.NewReader(nil, 0)
	var data [][]byte
	for _, blk := range blocks {
		data = append(data, []byte(blk.Data))
	}
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
