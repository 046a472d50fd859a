//go:build integration

package integration

import (
	"encoding/json"
	"testing"

	"github.com/hamba/avro/v2"
	"github.com/twmb/franz-go/pkg/sr"

	"blobfeed/verify"
)

// copied is what a consumer has that reads whole partitions, in any order, and takes the record of each key that has
// the highest updated. It knows nothing of the program but its documentation: records are JSON, or Avro by the registry.
type copied struct {
	once     bool   // no key has two rows of the scan
	scan     string // the ID of the first one
	newest   map[string]copiedRow
	rows     map[string]bool
	doubled  int
	registry *sr.Client
	schemas  map[int]avro.Schema
}

type copiedRow struct {
	updated, etag string
	gone          bool
}

func newCopied(t *testing.T, scan string, once bool) *copied {
	return &copied{once: once, scan: scan, newest: map[string]copiedRow{}, rows: map[string]bool{},
		registry: registry(t), schemas: map[int]avro.Schema{}}
}

// read reads all of a topic.
func (c *copied) read(t *testing.T, topic string) {
	t.Helper()
	reader := consume(t, shared.KafkaBrokers, topic)
	reader.onNote = func(r verify.Record) {
		if r.Key != nil {
			c.note(t, r)
		}
	}
	reader.drain(t)
	reader.cl.Close()
	if c.once && c.doubled > 0 {
		t.Errorf("topic %s: %d rows are doubled", topic, c.doubled)
	}
}

func (c *copied) note(t *testing.T, r verify.Record) {
	path := c.path(t, r.Key)
	if header(r, "scan") == c.scan {
		if c.rows[path] {
			c.doubled++
		}
		c.rows[path] = true
	}
	row := copiedRow{updated: header(r, "updated")}
	row.etag, row.gone = c.etag(t, r.Value)
	if row.updated == "" {
		t.Fatalf("%q has no header updated", path)
	}
	if row.updated >= c.newest[path].updated { // both have 19 digits before the point
		c.newest[path] = row
	}
}

// path returns the key of a record.
func (c *copied) path(t *testing.T, key []byte) string {
	var path []string
	var of struct {
		Path *string `avro:"path"`
	}
	switch {
	case key[0] == 0:
		c.decode(t, key, &of)
		return *of.Path
	case json.Unmarshal(key, &path) == nil:
		return path[0]
	default:
		return string(key)
	}
}

// etag returns that of a row.
func (c *copied) etag(t *testing.T, value []byte) (etag string, gone bool) {
	type row struct {
		ETag *string `json:"etag" avro:"etag"`
	}
	var v struct {
		After *row `json:"after" avro:"after"`
		row
	}
	switch {
	case len(value) == 0:
		return "", true
	case value[0] == 0:
		c.decode(t, value, &v)
	default:
		if err := json.Unmarshal(value, &v); err != nil {
			t.Fatalf("%s: %v", value, err)
		}
	}
	if v.After == nil {
		v.After = &v.row // without an envelope
	}
	if v.After.ETag == nil {
		return "", true
	}
	return *v.After.ETag, false
}

func (c *copied) decode(t *testing.T, message []byte, to any) {
	id, body, err := new(sr.ConfluentHeader).DecodeID(message)
	if err != nil {
		t.Fatal(err)
	}
	if c.schemas[id] == nil {
		text, err := c.registry.SchemaByID(t.Context(), id)
		if err != nil {
			t.Fatal(err)
		}
		if c.schemas[id], err = avro.ParseWithCache(text.Schema, "", &avro.SchemaCache{}); err != nil {
			t.Fatal(err)
		}
	}
	if err := avro.Unmarshal(c.schemas[id], body, to); err != nil {
		t.Fatalf("schema %d: %x: %v", id, message, err)
	}
}

// table returns the blobs that there are.
func (c *copied) table() *blobTable {
	table := newBlobTable()
	for path, row := range c.newest {
		if !row.gone {
			table.rows[path] = blobRow{ETag: row.etag}
		}
	}
	return table
}
