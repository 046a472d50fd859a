package envelope

import "blobfeed/source/ocf"

var (
	specVersion = []byte("1.0")
	typePrefix  = "Microsoft.Storage."
)

// appendHeaders appends the values of the headers to b, and lists them in r. The text of updated is in the value
// already, if updated is not empty.
func appendHeaders(b []byte, r *Record, ev *ocf.Event, pos Position, updated span) []byte {
	begin := len(b)
	var ends [8]int
	b = append(b, ev.ID...)
	ends[0] = len(b)
	b = append(b, ev.Topic...)
	ends[1] = len(b)
	b = append(append(b, typePrefix...), ev.EventType...)
	ends[2] = len(b)
	b = append(b, ev.Subject...)
	ends[3] = len(b)
	b = append(b, ev.EventTime...)
	ends[4] = len(b)
	if updated.to == 0 {
		b = r.Updated.AppendText(b)
	}
	ends[5] = len(b)
	b = append(b, ev.Sequencer...)
	ends[6] = len(b)
	b = pos.AppendText(b)
	ends[7] = len(b)

	r.Headers = append(r.Headers[:0], Header{"ce_specversion", specVersion})
	for i, key := range [...]string{"ce_id", "ce_source", "ce_type", "ce_subject", "ce_time", "updated", "sequence", "position"} {
		part := b[begin:ends[i]:ends[i]]
		begin = ends[i]
		if key == "updated" && updated.to > 0 {
			part = b[updated.from:updated.to:updated.to]
		}
		r.Headers = append(r.Headers, Header{key, part})
	}
	return b
}
