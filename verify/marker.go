package verify

import (
	"bytes"
	"fmt"
)

// place checks where a marker in a topic of its own says that its records end.
func (v *Resolved) place(r *Record, l *lane) {
	at := r.document().upTo
	if at == nil {
		v.add(r, "the marker says no partition and offset: %.100q", r.Value)
		return
	}
	end, known := v.ends[r.Partition]
	switch {
	case *at.Partition != r.Partition:
		v.add(r, "the marker speaks of partition %d of %s, and is on partition %d", *at.Partition, r.Topic, r.Partition)
	case *at.Offset < l.upTo:
		v.add(r, "the marker speaks of offset %d, the one before of %d", *at.Offset, l.upTo)
	case known && *at.Offset > end:
		v.add(r, "the marker speaks of offset %d, and the partition ends at %d", *at.Offset, end)
	}
	l.upTo = *at.Offset
}

// MarkerTime returns the time of a marker, "" of what is none: that of the value, or else of the header.
func (r *Record) MarkerTime() string {
	if r.Key != nil {
		return ""
	}
	for _, text := range [...][]byte{r.document().resolved, r.Header("resolved")} {
		if _, ok := parseClock(text); ok {
			return string(text)
		}
	}
	return ""
}

// marker returns the time of a marker, the zero time if it is none, and what is wrong with it. Readers such as Flink
// read the value, others the header: both count. Only a value in Avro that nobody reads is taken on the header's word.
func marker(r *Record) (clock, error) {
	header, hasHeader := r.lookup("resolved")
	value := r.document().resolved
	if r.Avro == nil && framed(r.Value) && len(value) == 0 {
		value = header
	}
	at, ok := parseClock(value)
	switch {
	case !ok && hasHeader:
		return clock{}, fmt.Errorf("the marker's header says %q, and its value no time: %.100q", header, r.Value)
	case !ok:
		return clock{}, fmt.Errorf("a record without a key is no marker: %.100q", r.Value)
	case hasHeader && !bytes.Equal(header, value):
		return clock{}, fmt.Errorf("the marker's header says %q, its value %q", header, value)
	case r.Millis != 0 && uint64(r.Millis) != at.wall/1e6:
		return at, fmt.Errorf("the marker says %s, and its record's timestamp %d", at, r.Millis)
	}
	return at, nil
}
