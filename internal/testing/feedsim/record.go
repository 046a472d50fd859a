package feedsim

import "strconv"

const (
	subjectPrefix = "/blobServices/default/containers/"
	subjectInfix  = "/blobs/"
	none          = 0 // the null branch of a union, and the end of a map
)

// append appends an event as a record of a schema version. The order is that of the schema's fields.
func (f *Feed) append(b []byte, v *version, e *event) []byte {
	b = appendLong(b, int64(v.number))
	b = appendString(b, f.topic)
	b = appendSubject(b, e.blob)
	b = appendLong(b, v.types[e.change])
	b = appendString(b, e.time())
	b = appendString(b, e.id())

	b = appendLong(b, v.apis[e.change])
	if e.blob != nil && e.blob.hash%8 == 0 { // not all clients send GUIDs
		b = append(appendLong(b, idLen+4), "cli-"...)
		b = append(b, e.client()...)
	} else {
		b = appendString(b, e.client())
	}
	b = append(append(appendLong(b, idLen), e.id()[:30]...), "000000"...) // requestId
	b = appendETag(b, e)
	if e.blob == nil {
		b = append(b, 0, 0, 0) // contentType, contentLength, blobType
	} else {
		b = appendString(b, e.contentType)
		b = appendLong(b, e.length)
		b = append(b, 2) // BlockBlob
	}
	if v.number == 1 {
		b = append(b, 0) // url: empty in all files of this version
		b = appendString(b, e.sequencer())
	} else {
		b = f.appendLater(b, v, e)
	}
	return appendDiagnostics(b, e)
}

// appendLater appends the fields from blobVersion on, which version 4 brought.
func (f *Feed) appendLater(b []byte, v *version, e *event) []byte {
	b = append(b, none) // blobVersion
	if e.blob == nil {
		b = append(b, none, none, 0) // containerVersion, blobTier, url
	} else {
		b = appendSome(b, f.blobs.versions[e.blob.container])
		if e.blob.tier == 0 {
			b = append(b, none)
		} else {
			b = appendLong(append(b, 2), int64(v.tier(e.blob.tier)))
		}
		b = f.appendURL(b, v, e.blob)
	}
	b = appendString(b, e.sequencer())

	switch { // previousInfo
	case e.change == tier:
		b = appendMap(b, "PreviousTier", v.tiers[v.tier(e.tier)])
	case e.change == deleted && e.blob.hash%2 == 0:
		b = appendMap(b, "WasBlobSoftDeleted", "true")
	default:
		b = append(b, none)
	}
	if e.change == snapshot { // snapshot
		b = appendSome(b, e.time())
	} else {
		b = append(b, none)
	}
	if e.change == properties { // blobPropertiesUpdated: a map of current and previous
		b = appendString(append(b, 2, 2), "ContentType")
		b = append(appendString(appendString(b, "application/octet-stream"), "text/plain"), none)
	} else {
		b = append(b, none)
	}
	if e.change == async { // asyncOperationInfo
		b = appendMap(b, "DestinationTier", v.tiers[v.tier(e.tier)], "WasAsyncOperation", "true")
	} else {
		b = append(b, none)
	}
	if v.number < 5 {
		return b
	}
	if e.change == tags { // blobTagsUpdated: a map of maps
		b = append(appendString(append(b, 2, 4), "previous"), none)
		b = append(appendString(b, "current"), 2)
		b = append(appendString(appendString(b, "project"), "x y"), none, none)
	} else {
		b = append(b, none)
	}
	return append(b, none) // restorePointMarker
}

// appendSubject appends the subject. The blob's name is in it verbatim. A Control event has neither container nor blob.
func appendSubject(b []byte, blob *blob) []byte {
	if blob == nil {
		return append(append(appendLong(b, int64(len(subjectPrefix)+len(subjectInfix))), subjectPrefix...),
			subjectInfix...)
	}
	b = appendLong(b, int64(len(subjectPrefix)+len(subjectInfix)+len(blob.key)-1))
	b = append(append(b, subjectPrefix...), blob.key[:blob.cut]...)
	return append(append(b, subjectInfix...), blob.name()...)
}

// appendURL appends the url: empty in all files of version 4, filled in since. Nothing is escaped in it.
func (f *Feed) appendURL(b []byte, v *version, blob *blob) []byte {
	if v.number < 5 {
		return append(b, 0)
	}
	b = appendLong(b, int64(len(f.endpoint)+len(blob.key)))
	return append(append(b, f.endpoint...), blob.key...)
}

// appendETag appends the entity tag: in hex, the .NET ticks of the change.
func appendETag(b []byte, e *event) []byte {
	if e.blob == nil {
		return append(b, 0)
	}
	const sinceYear1 = 621355968000000000
	var digits [16]byte
	hex16(digits[:], uint64(e.ticks+sinceYear1), "0123456789ABCDEF")
	return append(append(appendLong(b, 2+15), "0x"...), digits[1:]...) // fifteen digits until the year 3654
}

func appendDiagnostics(b []byte, e *event) []byte {
	const bid, sid = "77cb7abe-0006-0092-0003-36fb89000000", "2079c37b-c7e2-e1e7-ac5f-c291f8efaa39"
	n := int64(3)
	if e.blob == nil {
		n = 5
	}
	b = appendLong(b, n)
	b = appendString(appendString(b, "bid"), bid)
	b = appendString(appendString(b, "sid"), sid)
	b = appendString(b, "seq")
	var seq [64]byte
	s := strconv.AppendUint(append(seq[:0], '('), e.epoch, 10)
	s = strconv.AppendUint(append(s, ','), e.lsn/3, 10)
	s = strconv.AppendUint(append(s, ','), e.lsn, 10)
	s = strconv.AppendUint(append(s, ','), e.lsn-3, 10)
	b = appendString(b, append(s, ')'))
	if e.blob == nil {
		b = appendString(appendString(b, "lid"), bid)
		b = appendString(appendString(b, "lcx"), "0")
	}
	return append(b, none)
}
