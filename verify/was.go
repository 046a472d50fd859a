package verify

// A setting that may change makes different records of the same events. Records by the former setting are right, too,
// if they come before all others of their partition.

// was keeps records by the settings before a change, for Replay.
type was struct {
	now   map[form32]event
	since map[stretch]bool  // a record was as it is now
	until map[stretch]int64 // the offset of the last one as it was
	count int64
}

// form32 is a record of a key.
type form32 struct {
	key          id
	id           id
	value, other uint64
}

func (v *Replay) form(key []byte, e *event) form32 {
	return form32{key: hashed(key), id: e.id, value: e.value, other: e.rest & (headerBits | replayTombstone)}
}

// Or sets the record of the last expected event by the settings before a change.
func (v *Replay) Or(before Record) {
	if v.was == nil {
		v.was = &was{now: map[form32]event{}, since: map[stretch]bool{}, until: map[stretch]int64{}}
	}
	e := v.eventOf(&before)
	v.was.now[v.form(before.Key, &e)] = v.latest
}

// Before returns the number of records that Or allowed, and the offset of the last of them on each partition.
func (v *Replay) Before() (records int64, until map[int32]int64) {
	if v.was == nil {
		return 0, nil
	}
	until = map[int32]int64{}
	for lane, offset := range v.was.until {
		until[lane.partition] = offset
	}
	return v.was.count, until
}

// translate returns the event as it would come now.
func (v *Replay) translate(r *Record, e event) event {
	lane := stretch{r.Topic, r.Partition}
	now, old := v.was.now[v.form(r.Key, &e)]
	switch {
	case !old:
		v.was.since[lane] = true
		return e
	case v.form(r.Key, &now) == v.form(r.Key, &e), v.was.since[lane]: // the same before and now; or too late
		return e
	}
	v.was.count++
	v.was.until[lane] = r.Offset
	const time = timeBits | replayTimed
	now.rest = now.rest&^time | e.rest&time
	return now
}

// Same reports whether two records of an event have the same content.
func (v *Replay) Same(a, b *Record) bool {
	x, y := *a, *b
	x.doc, y.doc = nil, nil // which may be that of a later record
	e, f := v.eventOf(&x), v.eventOf(&y)
	return v.form(a.Key, &e) == v.form(b.Key, &f)
}

// Bad returns the number of failures so far.
func (v *Replay) Bad() int64 { return int64(len(v.first)) + v.more }
