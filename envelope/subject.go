package envelope

import (
	"strings"

	"blobfeed/source/ocf"
)

const (
	subjectPrefix = "/blobServices/default/containers/"
	blobsInfix    = "/blobs/"
	accountInfix  = "/storageAccounts/"
)

// subject returns the container and the blob of an event. The blob's name is everything after the first "/blobs/",
// verbatim: it is not escaped, and may hold "/blobs/" again. An event of a container has no blob.
func subject(s string) (container, blob string, ok bool) {
	rest, ok := strings.CutPrefix(s, subjectPrefix)
	if !ok {
		return "", "", false
	}
	container, after, found := strings.Cut(rest, "/")
	if !found {
		return container, "", container != ""
	}
	blob, ok = strings.CutPrefix(after, blobsInfix[1:])
	return container, blob, ok && container != "" && blob != ""
}

// SubjectOf returns the subject of the events of a blob.
func SubjectOf(container, blob string) string { return subjectPrefix + container + blobsInfix + blob }

// PathOf returns "container/blob" of a subject, "" if it names no blob.
func PathOf(s string) string {
	container, blob, ok := subject(s)
	if !ok || blob == "" {
		return ""
	}
	return container + "/" + blob
}

// account returns the storage account in an event's topic, or "".
func account(topic string) string {
	i := strings.LastIndex(topic, accountInfix)
	if i < 0 {
		return ""
	}
	name, _, _ := strings.Cut(topic[i+len(accountInfix):], "/")
	return name
}

// Kind is what an event does to the row of its blob.
type Kind uint8

// The kinds of events.
const (
	Other Kind = iota // changes no row
	Upsert
	Delete
	Control
	Unknown // of a type that this package does not know: it may change a row
)

// Classify returns what an event does. A lost deletion leaves a blob in every copy, and the blob's next event or a scan
// repairs one too many. So every BlobDeleted counts, whatever snapshot and previousInfo say: TestRecordedDeletions has
// the evidence. Of the other types, only BlobTierChanged can be of a snapshot: nothing else of a snapshot can change.
func Classify(ev *ocf.Event) Kind {
	if ev.EventType == "Control" {
		return Control
	}
	if ev.API == "UndeleteBlob" {
		return Upsert // with any type, since the documentation does not say which
	}
	switch ev.EventType {
	case "BlobCreated", "BlobPropertiesUpdated", "BlobMetadataUpdated", "BlobTagsUpdated",
		"AppendBlobDataUpdated": // the last one: announced
		return Upsert
	case "BlobTierChanged":
		if ev.Snapshot != "" {
			return Other
		}
		return Upsert
	case blobDeleted:
		return Delete
	case "BlobSnapshotCreated", "BlobAsyncOperationInitiated", "RestorePointMarkerCreated",
		"BlobLastAccessTimeUpdated", "ContainerCreated", "ContainerPropertiesUpdated": // these three: announced
		return Other
	}
	return Unknown
}

// blobDeleted is the type of events that say that a blob is gone.
const blobDeleted = "BlobDeleted"
