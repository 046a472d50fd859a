package verify

// A setting that may change makes other records of the same events. Those from before the change are right, too, as
// long as they come before all others of their partition.

// was is what Replay knows of records as they were before a change of settings.
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

// Or says how the event that was expected last came before a change of settings.
func (v *Replay) Or(before Record) {
	if v.was == nil {
		v.was = &was{now: map[form32]event{}, since: map[stretch]bool{}, until: map[stretch]int64{}}
	}
	e := v.eventOf(&before)
	v.was.now[v.form(before.Key, &e)] = v.latest
}

// Before returns how many records were as Or says, and the offset of the last of them on a partition.
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

// Same reports whether two records say the same of the same event.
func (v *Replay) Same(a, b *Record) bool {
	x, y := *a, *b
	x.doc, y.doc = nil, nil // which may be that of a later record
	e, f := v.eventOf(&x), v.eventOf(&y)
	return v.form(a.Key, &e) == v.form(b.Key, &f)
}

// Bad is how many failures records have shown so far.
func (v *Replay) Bad() int64 { return int64(len(v.first)) + v.more }
