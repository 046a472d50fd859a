package inventory

import (
	"errors"
	"fmt"
)

var errOrder = errors.New("the names of the listing are not in ascending order")

// rising reports whether b can follow a in a listing. Two characters outside ASCII can follow each other either way:
// the service does not document their order.
func rising(a, b string) bool {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return a[i] < b[i] || b[i] >= 0x80
		}
	}
	return len(a) < len(b)
}

// Before reports whether name is certainly listed before from.
func Before(name, from string) bool { return name != from && !rising(from, name) }

// inOrder returns an error if names do not rise, from the name listed before them on.
func inOrder(before string, blobs []Blob) error {
	for i := range blobs {
		if name := blobs[i].Name; name == "" || before != "" && !rising(before, name) {
			return fmt.Errorf("%w: %.200q follows %.200q: check proxies on the way to the storage service", errOrder,
				name, before)
		}
		before = blobs[i].Name
	}
	return nil
}

// bounded returns the blobs before end. The comparison of bytes is right for all names, since end is ASCII.
func bounded(blobs []Blob, end string) []Blob {
	if end == "" {
		return blobs
	}
	for n := len(blobs); n > 0; n-- {
		if blobs[n-1].Name < end {
			return blobs[:n]
		}
	}
	return nil
}
