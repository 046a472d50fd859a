package pipeline

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/plain"
	"blobfeed/source"
)

// addDead appends the record of a dead letter.
func (b *Block) addDead(topic string, d *deadLetter) {
	headers := []kgo.RecordHeader{
		{Key: "position", Value: []byte(d.position)}, {Key: "reason", Value: []byte(d.reason)},
		{Key: "content", Value: []byte(d.content)}, {Key: "blob", Value: []byte(d.blob)},
		{Key: "offset", Value: strconv.AppendInt(nil, d.offset, 10)},
		{Key: "part", Value: fmt.Appendf(nil, "%d/%d", d.part, d.parts)},
	}
	b.Records = append(b.Records, kgo.Record{Topic: topic, Key: []byte(d.position), Value: d.raw, Headers: headers})
	b.Counts.Bytes += len(d.raw)
}

// partSize is how much of a dead letter fits into a record beside its headers.
func (d *Pass) partSize() int64 { return max(int64(d.Limit)-4096, int64(d.Limit)/2) }

// keepEvent keeps an event that cannot be encoded, or is too large, as JSON: the columns of its record, with its
// subject and topic in place of those that are made of them.
func (b *Block) keepEvent(e *EventError, ev *source.Event, pos source.Position, size int64) error {
	return b.keep(e, ev, deadLetter{position: pos.String(), content: "event", blob: e.Blob, offset: e.Offset,
		reason: plain.Clip(e.Err.Error())}, size)
}

// keepRow does the same for a blob of a listing.
func (b *Block) keepRow(e *RowError, ev *source.Event, scan, container string, size int64) error {
	_, blob, _ := strings.Cut(ev.Subject, "/blobs/")
	blob = container + "/" + blob
	return b.keep(e, ev, deadLetter{position: "scan/" + scan + "/" + blob, content: "row", blob: blob,
		reason: plain.Clip(e.Err.Error())}, size)
}

// keep keeps an event, in parts where one record does not hold it.
func (b *Block) keep(fault error, ev *source.Event, d deadLetter, size int64) error {
	raw, err := json.Marshal(ev.Columns())
	if err != nil {
		return fault
	}
	d.parts = max(1, (len(raw)+int(size)-1)/int(size))
	for d.part = 1; d.part <= d.parts; d.part++ {
		d.raw = raw[:min(int(size), len(raw))]
		raw = raw[len(d.raw):]
		b.dead = append(b.dead, d)
	}
	return nil
}
