package ocf

// slot is where a field of the feed goes in an Event.
type slot uint8

const (
	toSchemaVersion slot = iota
	toContentLength
	lastLong

	toTopic
	toSubject
	toEventType
	toEventTime
	toID
	toAPI
	toClientRequestID
	toRequestID
	toETag
	toContentType
	toBlobType
	toBlobVersion
	toContainerVersion
	toBlobTier
	toURL
	toSequencer
	toSnapshot
	lastText

	toPreviousInfo
	toAsyncOperationInfo
	toRestorePointMarker
	lastPairs

	toBlobPropertiesUpdated
	toBlobTagsUpdated
)

var envelopeSlots = map[string]slot{
	"schemaVersion": toSchemaVersion, "topic": toTopic, "subject": toSubject, "eventType": toEventType,
	"eventTime": toEventTime, "id": toID,
}

var dataSlots = map[string]slot{
	"api": toAPI, "clientRequestId": toClientRequestID, "requestId": toRequestID, "etag": toETag,
	"contentType":   toContentType,
	"contentLength": toContentLength, "blobType": toBlobType, "blobVersion": toBlobVersion,
	"containerVersion": toContainerVersion,
	"blobTier":         toBlobTier, "url": toURL, "sequencer": toSequencer, "snapshot": toSnapshot,
	"previousInfo": toPreviousInfo, "asyncOperationInfo": toAsyncOperationInfo,
	"restorePointMarker":    toRestorePointMarker,
	"blobPropertiesUpdated": toBlobPropertiesUpdated, "blobTagsUpdated": toBlobTagsUpdated,
}

// action returns how to read a value of type s into the slot. ok is false if s does not fit.
func (to slot) action(s *schema) (a action, ok bool) {
	a.typ = s
	switch {
	case s.kind == kUnion:
		return compileUnion(s, to.action)
	case s.kind == kNull:
		a.op = opNull
	case to < lastLong && s.kind == kInt:
		a.op = opLong
	case to > lastLong && to < lastText && s.kind == kString:
		a.op = opString
	case to > lastLong && to < lastText && s.kind == kEnum:
		a.op = opSymbol
	case to > lastText && to < lastPairs && isTextMap(s):
		a.op = opPairs
	case to == toBlobPropertiesUpdated && s.kind == kMap && isChange(s.items):
		a.op = opProperties
	case to == toBlobTagsUpdated && s.kind == kMap && isTextMap(s.items):
		a.op = opTags
	default:
		return a, false
	}
	return a, true
}

// isText reports whether a value of the type is clearly a text: a string, a symbol, or null where there is none.
func isText(s *schema) bool {
	if s.kind == kUnion {
		for _, b := range s.union {
			if b.kind != kNull && !isText(b) {
				return false
			}
		}
		return true
	}
	return s.kind == kString || s.kind == kEnum
}

func isTextMap(s *schema) bool   { return s.kind == kMap && isText(s.items) }
func isStringMap(s *schema) bool { return s.kind == kMap && s.items.kind == kString }

// isChange reports whether s is the record that PropertyChange mirrors. One with more fields would lose them there.
func isChange(s *schema) bool {
	for _, f := range s.fields {
		if f.name != "current" && f.name != "previous" || !isText(f.typ) {
			return false
		}
	}
	return s.kind == kRecord
}

func (ev *Event) setLong(to slot, v int64) {
	if to == toSchemaVersion {
		ev.SchemaVersion = v
		return
	}
	ev.ContentLength, ev.HasContentLength = v, true
}

// text is a switch and no table of functions: it inlines into jumps, and this is the hot path.
func (ev *Event) text(to slot) *string {
	switch to {
	case toTopic:
		return &ev.Topic
	case toSubject:
		return &ev.Subject
	case toEventType:
		return &ev.EventType
	case toEventTime:
		return &ev.EventTime
	case toID:
		return &ev.ID
	case toAPI:
		return &ev.API
	case toClientRequestID:
		return &ev.ClientRequestID
	case toRequestID:
		return &ev.RequestID
	case toETag:
		return &ev.ETag
	case toContentType:
		return &ev.ContentType
	case toBlobType:
		return &ev.BlobType
	case toBlobVersion:
		return &ev.BlobVersion
	case toContainerVersion:
		return &ev.ContainerVersion
	case toBlobTier:
		return &ev.BlobTier
	case toURL:
		return &ev.URL
	case toSequencer:
		return &ev.Sequencer
	default:
		return &ev.Snapshot
	}
}

func (ev *Event) pairs(to slot) *[]Pair {
	switch to {
	case toPreviousInfo:
		return &ev.PreviousInfo
	case toAsyncOperationInfo:
		return &ev.AsyncOperationInfo
	default:
		return &ev.RestorePointMarker
	}
}
