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
		prev.BlobTier, prev.BlobType, prev.ContentType, prev.URL = ev.BlobTier, ev.BlobType, ev.ContentType, ev.URL
		prev.ContentLength, prev.HasContentLength = ev.ContentLength, ev.HasContentLength
	}
	for _, p := range ev.PreviousInfo {
		switch p.Name {
		case "PreviousTier":
			prev.BlobTier, told = p.Value, true
		case "LastVersion":
			prev.BlobVersion, told = p.Value, true
		}
	}
	for _, c := range ev.BlobPropertiesUpdated {
		if c.Name == "ContentType" {
			prev.ContentType, told = c.Previous, true
		}
	}
	return told
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
