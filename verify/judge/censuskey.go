package judge

import (
	"hash/maphash"
	"slices"
	"strings"

	"blobfeed/envelope"
	"blobfeed/source"
	"blobfeed/source/inventory"
)

// same reports whether what a topic has is the blob. Appends and writes of pages have no events, so of such blobs only
// the presence counts.
func (c *census) same(has uint64, b *inventory.Blob) bool {
	return b.BlobType != "BlockBlob" || has == c.sum(b.ETag, b.Length)
}

// sum is what is compared of a row: the columns that it has.
func (c *census) sum(etag string, length int64) uint64 {
	if c.without("etag") {
		etag = ""
	}
	if c.without("content_length") {
		length = 0
	}
	return maphash.Comparable(c.seed, comparedRow{etag, length})
}

func (c *census) without(column string) bool {
	return c.values.None || !c.v.Record.Chooses(column)
}

func (c *census) hash(s *subject, key []byte) uint64 {
	var h maphash.Hash
	h.SetSeed(c.seed)
	_, _ = h.WriteString(s.name) // a Hash never fails
	_ = h.WriteByte(0)
	_, _ = h.Write(key)
	return h.Sum64()
}

// key returns the topic and the key of a blob. Without a topic, the blob does not count.
func (c *census) key(e *censusKey, container string, b *inventory.Blob) (*subject, []byte, error) {
	e.ev = source.Event{
		Subject: envelope.SubjectOf(container, b.Name), BlobType: b.BlobType,
		EventTime: "1970-01-01T00:00:00Z", // of the key nothing else matters
	}
	if !c.v.Filter.MatchRow(&e.ev) {
		return nil, nil, nil
	}
	s := c.only
	if s == nil {
		topic, err := c.v.Topics.Of(&e.ev)
		if err != nil {
			return nil, nil, err
		}
		i := slices.IndexFunc(c.subjects, func(s *subject) bool { return s.name == topic })
		if i < 0 {
			if c.v.Topic == "" && b.Modified.Before(c.began) && c.part == 0 {
				c.stray[topic]++
			}
			return nil, nil, nil
		}
		s = c.subjects[i]
	}
	var err error
	e.buf, err = s.encoder.AppendRow(e.buf[:0], &e.rec, &e.ev, &envelope.Scan{})
	return s, e.rec.Key, err
}

// selects reports whether the settings select the blob of a path that a topic has.
func (c *census) selects(path, blobType string) bool {
	container, name, _ := strings.Cut(path, "/")
	filter := c.v.Filter
	if blobType == "" {
		filter.BlobTypes = nil
	}
	return filter.MatchRow(&source.Event{Subject: envelope.SubjectOf(container, name), BlobType: blobType})
}
