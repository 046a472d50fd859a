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
	Other Kind = iota
	Upsert
	Delete
	Control
)

// Classify returns what an event does. An unknown type is Other: it must not change a row.
func Classify(ev *ocf.Event) Kind {
	if ev.EventType == "Control" {
		return Control
	}
	if ev.Snapshot != "" { // of a snapshot, not of the blob itself; also its deletion
		return Other
	}
	if ev.API == "UndeleteBlob" {
		return Upsert // with any type, since the documentation does not say which
	}
	switch ev.EventType {
	case "BlobCreated", "BlobPropertiesUpdated", "BlobMetadataUpdated", "BlobTierChanged", "BlobTagsUpdated":
		return Upsert
	case "BlobDeleted":
		if ofOldVersion(ev) {
			return Other
		}
		return Delete
	}
	return Other
}

// ofOldVersion reports whether a deletion is of a version that was not the current one: the event names a later
// version. Versions are the times of their writes. If the event names no later one, the deletion counts as the blob's.
func ofOldVersion(ev *ocf.Event) bool {
	if ev.BlobVersion == "" {
		return false // the account keeps no versions
	}
	of, err := parseTime(ev.BlobVersion)
	if err != nil {
		return false
	}
	for _, p := range ev.PreviousInfo {
		if p.Name != "BlobVersion" && p.Name != "LastVersion" { // current after the event, and before it
			continue
		}
		if other, err := parseTime(p.Value); err == nil && other > of {
			return true
		}
	}
	return false
}
