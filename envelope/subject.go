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
	Other Kind = iota
	Upsert
	Delete
	Control
)

// Classify tells what an event does. A type it does not know is Other: it must not change a row.
func Classify(ev *ocf.Event) Kind {
	if ev.EventType == "Control" {
		return Control
	}
	if ev.Snapshot != "" { // of a snapshot, not of the blob itself; also its deletion
		return Other
	}
	if ev.API == "UndeleteBlob" {
		return Upsert // under whatever type: that is nowhere documented
	}
	switch ev.EventType {
	case "BlobCreated", "BlobPropertiesUpdated", "BlobMetadataUpdated", "BlobTierChanged", "BlobTagsUpdated":
		return Upsert
	case "BlobDeleted":
		return Delete
	}
	return Other
}
