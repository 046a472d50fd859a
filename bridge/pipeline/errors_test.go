package pipeline

import (
	"errors"
	"strings"
	"testing"
)

// An event that is refused says what can be done about it, once.
func TestRefusedEvent(t *testing.T) {
	for says, cause := range map[string]error{
		"raise it, or set BRIDGE_ON_ERROR=dead_letter": &TooLargeError{Topic: "t", Size: 2, Limit: 1},

		"bridge dump --at 120 log/x.avro shows it; BRIDGE_ON_ERROR=dead_letter": errors.New("no blob"),
	} {
		text := (&EventError{Blob: "log/x.avro", Offset: 120, Index: 3, Err: cause}).Error()
		if !strings.Contains(text, "event 3 of the block at log/x.avro:120: ") || !strings.Contains(text, says) ||
			strings.Count(text, "dead_letter") != 1 {
			t.Errorf("%s", text)
		}
	}
}
