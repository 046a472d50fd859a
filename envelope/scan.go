package envelope

import (
	"fmt"
	"time"

	"blobfeed/source/ocf"
)

// Scan is what the rows of a listing have in place of an event's time and place.
type Scan struct {
	ID      string    // of the scan: the header of its rows
	Updated Timestamp // of the rows: up to where the feed is resolved, or when the page was listed
	Served  time.Time // when the service answered, by its own clock
}

// AppendRow is Append for a blob that a listing shows, and makes an upsert of it, whatever the options say of events.
// The caller fills ev with what the listing says; its EventTime is when the blob was last modified, which becomes
// mvcc_timestamp. The record's timestamp is s.Served: by the blob's own time, a topic's retention could delete the
// record at once.
func (e *Encoder) AppendRow(buf []byte, r *Record, ev *ocf.Event, s *Scan) ([]byte, error) {
	wall, err := parseTime(ev.EventTime)
	if err != nil {
		return buf, rowError(ev, fmt.Errorf("last modified: %w", err))
	}
	return e.appendScanned(buf, r, ev, s, Upsert, Timestamp{Wall: wall})
}

// AppendGone is Append for a key that a scan found to have no blob anymore, and makes a deletion of it. The key is all
// that it reads from ev.
func (e *Encoder) AppendGone(buf []byte, r *Record, ev *ocf.Event, s *Scan) ([]byte, error) {
	return e.appendScanned(buf, r, ev, s, Delete, s.Updated)
}

func (e *Encoder) appendScanned(
	buf []byte, r *Record, ev *ocf.Event, s *Scan, kind Kind, written Timestamp,
) ([]byte, error) {
	container, blob, err := named(ev)
	switch {
	case err != nil:
		return buf, rowError(ev, err)
	case blob == "":
		return buf, rowError(ev, fmt.Errorf("subject %.200q names a container, not a blob", ev.Subject))
	}
	r.Kind, r.Updated, r.Millis = kind, s.Updated, s.Served.UnixMilli()
	r.row = row{
		ev: ev, container: container, blob: blob, kind: kind, updated: s.Updated, scan: s,
		hlc: s.Updated.AppendText(r.hlc[:0]), mvcc: written.AppendText(r.mvcc[:0]),
	}
	return e.appendRecord(buf, r), nil
}

// appendScanHeaders appends those of a row: it is no event, so it has neither those of CloudEvents nor a place.
func (e *Encoder) appendScanHeaders(b []byte, r *Record) []byte {
	from := len(b)
	b = append(b, r.row.scan.ID...)
	id := len(b)
	if e.o.Headers == HeadersCloudEvents {
		b = append(b, r.row.hlc...)
		r.Headers = append(r.Headers, Header{updatedName, b[id:len(b):len(b)]})
	}
	r.Headers = append(r.Headers, Header{ScanHeader, b[from:id:id]})
	return b
}

// rowError names the row. Its name may be as long as a name can be, so it is clipped.
func rowError(ev *ocf.Event, err error) error {
	return fmt.Errorf("row of %.200q: %w", ev.Subject, err)
}
