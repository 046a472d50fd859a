package envelope

import "blobfeed/source/ocf"

// blobBefore fills prev, unless it is nil, with what ev says about the row before it, and reports whether ev says
// anything. It never guesses: from a deletion it takes the blob's properties, which the service repeats, but not the
// etag, which is the deletion's own.
func blobBefore(ev, prev *ocf.Event) (told bool) {
	if prev == nil {
		prev = new(ocf.Event) // stays on the stack
	}
	*prev = ocf.Event{}
	if Classify(ev) == Delete {
		told = true
		for _, f := range repeated {
			f.Copy(prev, ev)
		}
	}
	for _, p := range ev.PreviousInfo {
		told = set(prev, previousInfo[p.Name], p.Value) || told
	}
	for _, c := range ev.BlobPropertiesUpdated {
		told = set(prev, updated[c.Name], c.Previous) || told
	}
	return told
}

func set(ev *ocf.Event, f *ocf.Field, text string) bool {
	if f != nil {
		f.SetText(ev, text)
	}
	return f != nil
}

// The fields of which an event says what they were: all of them by a deletion, the others by these names.
var repeated, previousInfo, updated = tellers()

func tellers() (repeated []*ocf.Field, previousInfo, updated map[string]*ocf.Field) {
	previousInfo, updated = map[string]*ocf.Field{}, map[string]*ocf.Field{}
	for _, f := range ocf.Fields {
		if f.Deletion {
			repeated = append(repeated, f)
		}
		if f.Previous != "" {
			previousInfo[f.Previous] = f
		}
		if f.Property != "" {
			updated[f.Property] = f
		}
	}
	return repeated, previousInfo, updated
}

// op is Debezium's name for what an event does. The feed does not distinguish a first write from a later one unless it
// says something about the row before. Readers with a primary key treat a "c" of a known row as an update.
func op(r *row) string {
	switch {
	case r.kind == Delete:
		return "d"
	case r.scan != nil:
		return "r" // read, in Debezium's words
	case (r.ev.EventType == "BlobCreated" || r.ev.API == "UndeleteBlob") && !r.told:
		return "c"
	}
	return "u"
}

func toldBefore(r *row) *row {
	if r.told {
		return r.before
	}
	return nil
}

func existedBefore(r *row) *row {
	switch op(r) {
	case "c", "r":
		return nil
	}
	return r.before
}
