package envelope

import (
	"slices"
	"strings"

	"blobfeed/source/ocf"
)

// Filter selects events. An empty list selects all. Control events and events without a blob pass: the encoder decides
// about them.
type Filter struct {
	From, To Timestamp // of "updated", both inclusive; zero: no limit

	Containers, ExcludeContainers []string
	Prefixes, ExcludePrefixes     []string // of "container/blob"
	Suffixes, ExcludeSuffixes     []string
	EventTypes, ExcludeEventTypes []string
	BlobTypes                     []string
}

// Match reports whether ev is selected. It fails if it needs the event's time and can't parse it.
func (f *Filter) Match(ev *ocf.Event) (bool, error) {
	if len(f.EventTypes) > 0 && !slices.Contains(f.EventTypes, ev.EventType) ||
		slices.Contains(f.ExcludeEventTypes, ev.EventType) || !f.MatchRow(ev) {
		return false, nil
	}
	if f.From == (Timestamp{}) && f.To == (Timestamp{}) {
		return true, nil
	}
	if Classify(ev) == Control {
		return true, nil
	}
	wall, err := parseTime(ev.EventTime)
	if err != nil {
		return false, err
	}
	at := Timestamp{Wall: wall, Logical: logical(ev.Sequencer)}
	return at.Compare(f.From) >= 0 && (f.To == (Timestamp{}) || at.Compare(f.To) <= 0), nil
}

// MatchRow reports whether the row of a scan is selected: by the blob's path and type. It has no event's type, and its
// time is not an event's.
func (f *Filter) MatchRow(ev *ocf.Event) bool {
	if len(f.BlobTypes) > 0 && !slices.Contains(f.BlobTypes, ev.BlobType) {
		return false
	}
	container, blob, ok := subject(ev.Subject)
	return !ok || f.Path(container, blob)
}

// Selects reports whether the filter may leave some blob of a container.
func (f *Filter) Selects(container string) bool {
	_, some := f.Prefix(container)
	return some && (len(f.Containers) == 0 || slices.Contains(f.Containers, container)) &&
		!slices.Contains(f.ExcludeContainers, container)
}

// Prefix returns what the names of all blobs begin with that the prefixes of the filter may leave in a container. Some
// is false if they leave none.
func (f *Filter) Prefix(container string) (prefix string, some bool) {
	if len(f.Prefixes) == 0 {
		return "", true
	}
	for _, p := range f.Prefixes {
		if strings.HasPrefix(container+"/", p) {
			return "", true
		}
		name, ok := strings.CutPrefix(p, container+"/")
		if !ok {
			continue
		}
		if !some {
			prefix, some = name, true
		}
		for !strings.HasPrefix(name, prefix) {
			prefix = prefix[:len(prefix)-1]
		}
	}
	return strings.ToValidUTF8(prefix, ""), some
}

// Deletions reports whether the filter selects the events of deletions, by their type.
func (f *Filter) Deletions() bool {
	return (len(f.EventTypes) == 0 || slices.Contains(f.EventTypes, blobDeleted)) &&
		!slices.Contains(f.ExcludeEventTypes, blobDeleted)
}

// Path reports whether the filter selects a blob by its container and name.
func (f *Filter) Path(container, blob string) bool {
	if len(f.Containers) > 0 && !slices.Contains(f.Containers, container) ||
		slices.Contains(f.ExcludeContainers, container) {
		return false
	}
	begins := func(p string) bool { // "container/blob" begins with p, without making it
		if rest, ok := strings.CutPrefix(p, container); ok && rest != "" {
			return rest[0] == '/' && strings.HasPrefix(blob, rest[1:])
		}
		return strings.HasPrefix(container, p)
	}
	ends := func(s string) bool { return strings.HasSuffix(blob, s) }
	return (len(f.Prefixes) == 0 || slices.ContainsFunc(f.Prefixes, begins)) && !slices.ContainsFunc(f.ExcludePrefixes,
		begins) &&
		(len(f.Suffixes) == 0 || slices.ContainsFunc(f.Suffixes, ends)) && !slices.ContainsFunc(f.ExcludeSuffixes, ends)
}

// Active reports whether the filter may leave anything out.
func (f *Filter) Active() bool {
	return f.From != (Timestamp{}) || f.To != (Timestamp{}) ||
		len(f.Containers)+len(f.ExcludeContainers)+len(f.Prefixes)+len(f.ExcludePrefixes)+
			len(f.Suffixes)+len(f.ExcludeSuffixes)+len(f.EventTypes)+len(f.ExcludeEventTypes)+len(f.BlobTypes) > 0
}
