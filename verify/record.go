package verify

// Record is a record of a topic. A nil key makes it a marker.
type Record struct {
	Topic      string
	Partition  int32
	Offset     int64
	Key, Value []byte
	Headers    []Header
	Millis     int64  // 0: not known
	In         string // the topic that holds it, where that is another than the one that it speaks of
	Avro       *Avro  // reads a value in Avro; nil: it is not read

	doc *document // of the value, where a Group shares it among its validators
}

// Header is a header of a record.
type Header struct {
	Key   string
	Value []byte
}

// Header returns the value of a header, or nil.
func (r *Record) Header(key string) []byte {
	v, _ := r.lookup(key)
	return v
}

func (r *Record) lookup(key string) (value []byte, ok bool) {
	for i := range r.Headers {
		if r.Headers[i].Key == key {
			return r.Headers[i].Value, true
		}
	}
	return nil, false
}

// bare reports whether a record has none of the bridge's headers (HEADERS=none; it may have others). Only then the
// value is read instead: if headers are written, a missing one is a failure.
func (r *Record) bare() bool {
	for i := range r.Headers {
		switch r.Headers[i].Key {
		case "ce_id", "updated", "position", "sequence", "resolved":
			return false
		}
	}
	return true
}

func (r *Record) document() *document {
	if r.doc == nil {
		r.doc = &document{}
	}
	if !r.doc.parsed {
		text, members := r.Avro.read(r.Value)
		if members == nil {
			text = r.Value
		}
		*r.doc = parseDocument(text)
		r.doc.members = members
	}
	return r.doc
}
