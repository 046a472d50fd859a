package verify

import "bytes"

// The enriched envelope has the time at which the record was made, which differs between two deliveries of an event.
// Only its members ts_ms and ts_ns at the top may differ.

// withoutMade returns a value without the digits of these members, or the value itself if it has none.
func (r *Record) withoutMade() []byte {
	var spans []span
	if framed(r.Value) {
		r.document()
		for _, name := range [...]string{"ts_ns", "ts_ms"} { // in their order
			if s, ok := r.doc.members[name]; ok {
				spans = append(spans, s)
			}
		}
	} else {
		// In JSON they are the last members, which are sorted by name; a schema behind them has no such members, and in
		// a string there is a backslash before the quote.
		for _, name := range [...]string{`"ts_ms": `, `"ts_ns": `} {
			at := bytes.LastIndex(r.Value, []byte(name))
			if at < 0 {
				return r.Value
			}
			at += len(name)
			_, n := number(r.Value[at:])
			spans = append(spans, span{at, at + n})
		}
	}
	var rest []byte
	from := 0
	for _, s := range spans {
		if s.from < from {
			return r.Value // not as the bridge writes it
		}
		rest = append(rest, r.Value[from:s.from]...)
		from = s.to
	}
	return append(rest, r.Value[from:]...)
}
