package envelope

import (
	"cmp"
	"fmt"
	"strconv"
	"strings"
	"time"

	"blobfeed/source/ocf"
)

const (
	subjectPrefix = "/blobServices/default/containers/"
	blobsInfix    = "/blobs/"
	accountInfix  = "/storageAccounts/"
)

// subject returns the container and the blob of an event. The blob's name is everything after the first "/blobs/",
// verbatim: it is not escaped, and may hold "/blobs/" again. An event of a container has no blob.
func subject(s string) (container, blob string, ok bool) {
	rest, ok := strings.CutPrefix(s, subjectPrefix)
	if !ok {
		return "", "", false
	}
	container, after, found := strings.Cut(rest, "/")
	if !found {
		return container, "", container != ""
	}
	blob, ok = strings.CutPrefix(after, blobsInfix[1:])
	return container, blob, ok && container != "" && blob != ""
}

// SubjectOf returns the subject of the events of a blob.
func SubjectOf(container, blob string) string { return subjectPrefix + container + blobsInfix + blob }

// PathOf returns "container/blob" of a subject, "" if it names no blob.
func PathOf(s string) string {
	container, blob, ok := subject(s)
	if !ok || blob == "" {
		return ""
	}
	return container + "/" + blob
}

// account returns the storage account in an event's topic, or "".
func account(topic string) string {
	if i := strings.LastIndexByte(topic, '/') + 1; strings.HasSuffix(topic[:i], accountInfix) {
		return topic[i:] // of the service, and found in a third of the time
	}
	i := strings.LastIndex(topic, accountInfix)
	if i < 0 {
		return ""
	}
	name, _, _ := strings.Cut(topic[i+len(accountInfix):], "/")
	return name
}

// Kind is what an event does to the row of its blob.
type Kind uint8

// The kinds of events.
const (
	Other Kind = iota // changes no row
	Upsert
	Delete
	Control
	Unknown // of a type that this package does not know: it may change a row
)

// Classify returns what an event does. A lost deletion leaves a blob in every copy, and the blob's next event or a scan
// repairs one too many. So every BlobDeleted counts, whatever snapshot and previousInfo say: TestRecordedDeletions has
// the evidence. Of the other types, only BlobTierChanged can be of a snapshot: nothing else of a snapshot can change.
func Classify(ev *ocf.Event) Kind {
	if ev.EventType == "Control" {
		return Control
	}
	if ev.API == "UndeleteBlob" {
		return Upsert // with any type, since the documentation does not say which
	}
	switch ev.EventType {
	case "BlobCreated", "BlobPropertiesUpdated", "BlobMetadataUpdated", "BlobTagsUpdated",
		"AppendBlobDataUpdated": // the last one: announced
		return Upsert
	case "BlobTierChanged":
		if ev.Snapshot != "" {
			return Other
		}
		return Upsert
	case blobDeleted:
		return Delete
	case "BlobSnapshotCreated", "BlobAsyncOperationInitiated", "RestorePointMarkerCreated",
		"BlobLastAccessTimeUpdated", "ContainerCreated", "ContainerPropertiesUpdated": // these three: announced
		return Other
	}
	return Unknown
}

// blobDeleted is the type of events that say that a blob is gone.
const blobDeleted = "BlobDeleted"

// EventTime returns when an event happened, to the millisecond, like the timestamp of its record.
func EventTime(ev *ocf.Event) (time.Time, error) {
	ns, err := parseTime(ev.EventTime)
	if err != nil {
		return time.Time{}, err
	}
	return time.UnixMilli(ns / 1e6), nil
}

// parseTime parses an event's time. The service writes 2006-01-02T15:04:05.0000000Z always, which is read without
// time.Parse; anything else goes through it.
func parseTime(s string) (ns int64, err error) {
	if len(s) == len("2006-01-02T15:04:05.0000000Z") && s[4] == '-' && s[7] == '-' && s[10] == 'T' && s[13] == ':' &&
		s[16] == ':' && s[19] == '.' && s[27] == 'Z' {
		year, ok1 := digits(s[0:4])
		month, ok2 := digits(s[5:7])
		day, ok3 := digits(s[8:10])
		hour, ok4 := digits(s[11:13])
		minute, ok5 := digits(s[14:16])
		second, ok6 := digits(s[17:19])
		ticks, ok7 := digits(s[20:27])
		if ok1 && ok2 && ok3 && ok4 && ok5 && ok6 && ok7 && year >= 1970 && year < 2262 &&
			month >= 1 && month <= 12 && day >= 1 && day <= 28 && hour < 24 && minute < 60 && second < 60 {
			return time.Date(year, time.Month(month), day, hour, minute, second, ticks*100, time.UTC).UnixNano(), nil
		}
	}
	t, err := time.Parse(time.RFC3339Nano, s)
	if err != nil {
		return 0, fmt.Errorf("eventTime %.100q: want a time such as 2006-01-02T15:04:05.0000000Z", s)
	}
	if t.Year() < 1970 || t.Year() >= 2262 {
		return 0, fmt.Errorf("eventTime %.100q is out of range", s)
	}
	return t.UnixNano(), nil
}

func digits(s string) (n int, ok bool) {
	for i := range len(s) {
		c := s[i] - '0'
		if c > 9 {
			return 0, false
		}
		n = n*10 + int(c)
	}
	return n, true
}

// logical returns the low 31 bits of a sequencer, which is a hexadecimal number; 0 of one that is not.
func logical(sequencer string) int32 {
	v, err := strconv.ParseUint(sequencer[max(0, len(sequencer)-8):], 16, 32)
	if err != nil {
		return 0
	}
	return int32(v & 0x7fffffff)
}

// Timestamp is a hybrid logical clock's time, as CockroachDB writes it.
type Timestamp struct {
	Wall    int64 // ns since 1970
	Logical int32 // order within the same ns
}

// AppendText appends "<ns>.<10 digits>".
func (t Timestamp) AppendText(b []byte) []byte {
	b = strconv.AppendInt(b, t.Wall, 10)
	b = append(b, ".0000000000"...)
	digits := b[len(b)-10:]
	for v, i := t.Logical, 9; v > 0; v, i = v/10, i-1 {
		digits[i] = byte('0' + v%10)
	}
	return b
}

// String returns "<ns>.<10 digits>".
func (t Timestamp) String() string { return string(t.AppendText(nil)) }

// Compare orders timestamps.
func (t Timestamp) Compare(o Timestamp) int {
	return cmp.Or(cmp.Compare(t.Wall, o.Wall), cmp.Compare(t.Logical, o.Logical))
}

// ParseTimestamp parses what String returns.
func ParseTimestamp(s string) (Timestamp, error) {
	wall, logical, ok := strings.Cut(s, ".")
	w, err1 := strconv.ParseInt(wall, 10, 64)
	l, err2 := strconv.ParseInt(logical, 10, 32)
	if !ok || err1 != nil || err2 != nil || len(logical) != 10 || w < 0 || l < 0 {
		return Timestamp{}, fmt.Errorf("timestamp %q: want <nanoseconds>.<10 digits>", s)
	}
	return Timestamp{Wall: w, Logical: int32(l)}, nil
}
