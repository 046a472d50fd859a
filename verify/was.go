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

func newWas() *was {
	return &was{now: map[form32]event{}, since: map[stretch]bool{}, until: map[stretch]int64{}}
}

func form32Of(key []byte, e *event) form32 {
	return form32{key: hashed(key), id: e.id, value: e.value, other: e.rest & (headerBits | replayTombstone)}
}

// translate returns the event as it would come now.
func (w *was) translate(r *Record, e event) event {
	lane := stretch{r.Topic, r.Partition}
	now, old := w.now[form32Of(r.Key, &e)]
	switch {
	case !old:
		w.since[lane] = true
		return e
	case form32Of(r.Key, &now) == form32Of(r.Key, &e), w.since[lane]: // the same before and now; or too late
		return e
	}
	w.count++
	w.until[lane] = r.Offset
	const time = timeBits | replayTimed
	now.rest = now.rest&^time | e.rest&time
	return now
}
