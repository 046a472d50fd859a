package faults

import (
	"fmt"
	"net/http"
	"strings"
)

// Class is what a request asks for.
type Class int

// The classes.
const (
	Watermark Class = iota // meta/segments.json
	Manifest               // of a segment
	Listing
	Chunk
	Other
	classes
)

func (c Class) String() string {
	return [...]string{"watermark", "manifest", "listing", "chunk", "other"}[c]
}

func classOf(r *http.Request) Class {
	switch path := r.URL.Path; {
	case r.URL.Query().Get("comp") == "list":
		return Listing
	case strings.HasSuffix(path, "/meta/segments.json"):
		return Watermark
	case strings.HasSuffix(path, "/meta.json"):
		return Manifest
	case strings.HasSuffix(path, ".avro"):
		return Chunk
	}
	return Other
}

// Stats is what happened so far.
type Stats struct {
	Requests [classes]int
	Bytes    [classes]int64 // of bodies that were sent whole
	Faults   [kinds]int     // that were really injected
}

// Total is the number of requests.
func (s Stats) Total() int { return sum(s.Requests[:]) }

// Injected is the number of faults.
func (s Stats) Injected() int { return sum(s.Faults[:]) }

func sum(counts []int) (total int) {
	for _, n := range counts {
		total += n
	}
	return total
}

// Since returns what happened since an earlier moment.
func (s Stats) Since(before Stats) Stats {
	for i := range s.Requests {
		s.Requests[i] -= before.Requests[i]
		s.Bytes[i] -= before.Bytes[i]
	}
	for i := range s.Faults {
		s.Faults[i] -= before.Faults[i]
	}
	return s
}

func (s Stats) String() string {
	text := fmt.Sprintf("%d requests", s.Total())
	for c, n := range s.Requests {
		text += fmt.Sprintf(", %s %d", Class(c), n)
	}
	text += fmt.Sprintf("; %d faults", s.Injected())
	for k, n := range s.Faults {
		if n > 0 {
			text += fmt.Sprintf(", %s %d", Kind(k), n)
		}
	}
	return text
}
