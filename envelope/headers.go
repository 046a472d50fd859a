package envelope

import (
	"slices"
	"strings"
)

const (
	typePrefix  = "Microsoft.Storage."
	updatedName = "updated"

	contentTypeName = "content-type"
)

var specVersion = []byte("1.0")

// cloudEventNames are the headers of every record, in their order.
var cloudEventNames = [...]string{"ce_specversion", "ce_id", "ce_source", "ce_type", "ce_subject", "ce_time",
	updatedName, "sequence", "position"}

// contentTypes are CloudEvents' datacontenttype of values, by format. In binary mode that header has no prefix. A value
// without bytes has no type.
var contentTypes = [...]Header{
	JSON: {contentTypeName, []byte("application/json")}, Avro: {contentTypeName, []byte("application/avro")},
}

// ScanHeader is the header of rows from a scan, whatever the mode: nothing else tells them from changes.
const ScanHeader = "scan"

// markerNames are the headers of markers. Consumers recognize markers by them, and read what a marker promises.
var markerNames = [...]string{"resolved", "seek", "gap", "feed"}

// reserved reports whether a header belongs to the bridge, which writes it now, or may write it in a later version.
func reserved(name string) bool {
	return strings.HasPrefix(name, "ce_") || name == contentTypeName || name == "epoch" || name == ScanHeader ||
		slices.Contains(cloudEventNames[:], name) || slices.Contains(markerNames[:], name)
}

// constantHeaders returns the headers that are the same for all events, and those of events whose record has a value.
func (o *Options) constantHeaders() (all, typed []Header) {
	if o.Headers == HeadersNone {
		return o.ExtraHeaders, o.ExtraHeaders
	}
	all = append(slices.Clip(o.ExtraHeaders), Header{cloudEventNames[0], specVersion})
	return all, append(slices.Clip(all), contentTypes[o.Format])
}

// appendHeaders appends the values of the headers to b, and lists them in r.
func (e *Encoder) appendHeaders(b []byte, r *Record, hasValue bool) []byte {
	if r.row.scan != nil {
		r.Headers = append(r.Headers[:0], e.o.ExtraHeaders...)
		return e.appendScanHeaders(b, r)
	}
	if hasValue {
		r.Headers = append(r.Headers[:0], e.typed...)
	} else {
		r.Headers = append(r.Headers[:0], e.constant...)
	}
	if e.o.Headers == HeadersNone {
		return b
	}
	ev := r.row.ev
	var ends [len(cloudEventNames)]int // the first is a constant
	ends[0] = len(b)
	b = append(b, ev.ID...)
	ends[1] = len(b)
	b = append(b, ev.Topic...)
	ends[2] = len(b)
	b = append(append(b, typePrefix...), ev.EventType...)
	ends[3] = len(b)
	b = append(b, ev.Subject...)
	ends[4] = len(b)
	b = append(b, ev.EventTime...)
	ends[5] = len(b)
	b = append(b, r.row.hlc...)
	ends[6] = len(b)
	b = append(b, ev.Sequencer...)
	ends[7] = len(b)
	b = append(b, r.row.position...)
	ends[8] = len(b)

	for i, name := range cloudEventNames[1:] {
		r.Headers = append(r.Headers, Header{name, b[ends[i]:ends[i+1]:ends[i+1]]})
	}
	return b
}
