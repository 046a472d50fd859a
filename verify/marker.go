package verify

import (
	"bytes"
	"fmt"
)

// MarkerTime returns the time of a marker from its value, or else from its header. It returns "" for other records.
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

// marker returns the time of a marker, or the zero time for other records, and what is wrong with it. Readers such as
// Flink use the value, others the header, so both count. Only if a value in Avro can't be read, the header alone
// counts.
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

// UpTo returns the partition and the offset in the topic of records that a marker in a topic of its own names.
func (r *Record) UpTo() (partition int32, offset int64, ok bool) {
	if r.Key != nil || r.In == "" || r.document().upTo == nil {
		return 0, 0, false
	}
	at := r.document().upTo
	return *at.Partition, *at.Offset, true
}
