// Package listing reads the answers of List Blobs, of Azure and of Azurite. It keeps only what a scan delivers, and
// holds one piece of the answer in memory at a time.
package listing

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
	"unicode/utf8"

	"blobfeed/source/inventory"
)

// ErrForeign is the error for an answer that is no listing, such as the page of a captive portal.
var ErrForeign = errors.New("the answer is not a listing of blobs: check the endpoint, and proxies on the way to it")

// Page is an answer.
type Page struct {
	Blobs    []inventory.Blob
	Prefixes []string // that stand for the blobs that begin with them
	Marker   string   // of the next page
}

// Decode reads an answer. Without all, it leaves out snapshots, old versions and deleted blobs.
func Decode(r io.Reader, all bool) (*Page, error) {
	d := decoders.Get().(*decoder)
	defer func() {
		d.r, d.page = nil, nil // the answer is not kept
		decoders.Put(d)
	}()
	d.reset(r)
	d.texts, d.lines, d.page, d.all, d.listed, d.date = d.texts[:0], d.lines[:0], &Page{}, all, false, d.date[:0]
	if err := d.document(); err != nil {
		return nil, err
	}
	d.page.Blobs = d.blobs()
	return d.page, nil
}

// decoders keeps the arrays of decoders, which take as much as a page. The garbage collector empties it.
var decoders = sync.Pool{New: func() any { return new(decoder) }}

// decoder collects the lines of a page. It keeps their texts in one buffer, so that a page costs few allocations.
type decoder struct {
	markup
	texts  []byte
	lines  []line
	page   *Page
	all    bool // also what is not current
	listed bool // there was an element Blobs

	date     []byte // the last Last-Modified, which other lines may repeat
	modified time.Time
}

// line is a line of a listing.
type line struct {
	name, etag, contentType, version span
	blobType, tier                   string
	length                           int64
	modified                         time.Time
	inferred                         bool // the tier is the account's default
	hidden                           bool // it is not the current version
}

// span is where a text is in decoder.texts.
type span struct{ from, to int }

func (d *decoder) document() error {
	if err := d.next(); errors.Is(err, io.ErrUnexpectedEOF) && d.err == io.ErrUnexpectedEOF {
		return ErrForeign
	} else if err != nil {
		return err
	}
	if string(d.name) != "EnumerationResults" {
		return ErrForeign
	}
	err := d.children((*decoder).part)
	if err == nil && !d.listed {
		err = ErrForeign
	}
	return err
}

// children calls f for each element in the one whose tag was read last. F reads to the end of its element.
func (d *decoder) children(f func(*decoder) error) error {
	if d.kind == empty {
		return nil
	}
	for {
		if err := d.next(); err != nil || d.kind == end {
			return err
		}
		if err := f(d); err != nil {
			return err
		}
	}
}

// part reads a child of the root.
func (d *decoder) part() error {
	switch string(d.name) {
	case "Blobs":
		d.listed = true
		return d.children((*decoder).entry)
	case "NextMarker":
		text, err := d.leaf()
		d.page.Marker = string(text)
		return err
	}
	return d.skip()
}

// entry reads a child of Blobs.
func (d *decoder) entry() error {
	prefix := string(d.name) == "BlobPrefix"
	if !prefix && string(d.name) != "Blob" {
		return d.skip()
	}
	d.lines = append(d.lines, line{})
	if err := d.children((*decoder).about); err != nil {
		return err
	}
	l := d.line()
	if l.name.from == l.name.to {
		return d.damaged("a blob without a name")
	}
	if l.inferred {
		l.tier = ""
	}
	if prefix {
		d.page.Prefixes = append(d.page.Prefixes, string(d.texts[l.name.from:l.name.to]))
	}
	if prefix || l.hidden && !d.all {
		d.lines = d.lines[:len(d.lines)-1]
	}
	if len(d.lines)+len(d.page.Prefixes) > inventory.MaxPage { // I9
		return d.damaged("a page of more than %d blobs", inventory.MaxPage)
	}
	return nil
}

// line returns the line that is read.
func (d *decoder) line() *line { return &d.lines[len(d.lines)-1] }

// about reads a child of Blob.
func (d *decoder) about() error {
	l := d.line()
	switch string(d.name) {
	case "Name":
		return d.named()
	case "Properties":
		return d.children((*decoder).property)
	case "Snapshot":
		text, err := d.leaf()
		l.hidden = l.hidden || len(text) > 0
		return err
	case "Deleted":
		text, err := d.leaf()
		l.hidden = l.hidden || string(text) == "true"
		return err
	case "IsCurrentVersion": // missing in accounts without versions
		text, err := d.leaf()
		l.hidden = l.hidden || string(text) == "false"
		return err
	case "VersionId":
		text, err := d.leaf()
		l.version = d.keep(text)
		return err
	}
	return d.skip()
}

// named reads the name. Names with characters that XML does not have are encoded.
func (d *decoder) named() error {
	encoded, err := d.attr("Encoded")
	if err != nil {
		return err
	}
	text, err := d.leaf()
	if err != nil {
		return err
	}
	if encoded == "true" {
		plain, err := url.PathUnescape(string(text))
		if err != nil {
			return d.damaged("name %.100q is not encoded correctly", text)
		}
		text = []byte(plain)
	}
	if !utf8.Valid(text) {
		return d.damaged("name %.100q is not UTF-8", text)
	}
	d.line().name = d.keep(text)
	return nil
}

// property reads a child of Properties.
func (d *decoder) property() error {
	l := d.line()
	switch string(d.name) {
	case "Etag":
		text, err := d.leaf()
		l.etag = d.keep(bytes.Trim(text, `"`))
		return err
	case "Content-Length":
		text, err := d.leaf()
		if err != nil {
			return err
		}
		length, err := strconv.ParseUint(string(text), 10, 63)
		if err != nil {
			return d.damaged("invalid Content-Length %.50q", text)
		}
		l.length = int64(length)
	case "Last-Modified":
		text, err := d.leaf()
		if err != nil {
			return err
		}
		if len(text) == 0 || !bytes.Equal(text, d.date) { // d.date may be empty, and d.modified of another page
			if d.modified, err = time.Parse(http.TimeFormat, string(text)); err != nil {
				return d.damaged("invalid Last-Modified %.50q", text)
			}
			d.date = append(d.date[:0], text...)
		}
		l.modified = d.modified
	case "Content-Type":
		text, err := d.leaf()
		l.contentType = d.keep(text)
		if n := len(d.lines); n > 1 {
			// Most blobs have the type of the one before.
			if before := d.lines[n-2].contentType; bytes.Equal(d.texts[before.from:before.to], text) {
				d.texts, l.contentType = d.texts[:l.contentType.from], before
			}
		}
		return err
	case "BlobType":
		text, err := d.leaf()
		l.blobType = constant(text)
		return err
	case "AccessTier":
		text, err := d.leaf()
		l.tier = constant(text)
		return err
	case "AccessTierInferred":
		text, err := d.leaf()
		l.inferred = string(text) == "true"
		return err
	default:
		return d.skip()
	}
	return nil
}

// keep copies a text.
func (d *decoder) keep(text []byte) span {
	from := len(d.texts)
	d.texts = append(d.texts, text...)
	return span{from, len(d.texts)}
}

// constant returns text without an allocation if it is one of the usual values.
func constant(text []byte) string {
	for _, known := range [...]string{"BlockBlob", "AppendBlob", "PageBlob", "Hot", "Cool", "Cold", "Archive"} {
		if string(text) == known {
			return known
		}
	}
	return string(text)
}

// blobs returns the lines.
func (d *decoder) blobs() []inventory.Blob {
	texts := string(d.texts)
	of := func(s span) string { return texts[s.from:s.to] }
	blobs := make([]inventory.Blob, len(d.lines))
	for i := range d.lines {
		l := &d.lines[i]
		blobs[i] = inventory.Blob{Name: of(l.name), ETag: of(l.etag), ContentType: of(l.contentType),
			BlobType: l.blobType, Tier: l.tier, Version: of(l.version), Length: l.length, Modified: l.modified}
	}
	return blobs
}
