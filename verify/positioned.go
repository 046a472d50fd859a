package verify

// positioned is what the validators of the header position share.
type positioned struct {
	failures
	bare bareFirst
}

// locate returns the position of an event, and the header that it is from. It is false for a marker, for a row of a
// scan, for a record without headers that comes before all records with them, and for an invalid header, which is a
// failure.
func (p *positioned) locate(r *Record) (header []byte, pos position, ok bool) {
	if r.Key == nil || r.Scanned() || p.bare.over(r) {
		return nil, position{}, false
	}
	header = r.Header("position")
	pos, ok = parsePosition(header)
	if !ok {
		p.add(r, "header position is %q", header)
		return header, position{}, false
	}
	p.checked++
	return header, pos, true
}

type place struct {
	partition int32
	form      form
	round     uint16
	pos       position
}
