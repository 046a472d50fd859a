package check

import (
	"encoding/json"
	"fmt"
	"io"

	"blobfeed/internal/plain"
)

// Status is the verdict of a finding.
type Status string

const (
	OK      Status = "ok"
	Warning Status = "warning" // run works, but perhaps not as wanted
	Failed  Status = "failed"  // run would not work
)

// Finding is one line.
type Finding struct {
	Check  string `json:"check"` // the subject, one word of a small set
	Status Status `json:"status"`
	Detail string `json:"detail"`
	Do     string `json:"do,omitempty"` // what to do about it
}

// Findings are what was found, in order.
type Findings []Finding

// Add adds a line.
func (fs *Findings) Add(check string, status Status, detail, do string) {
	*fs = append(*fs, Finding{check, status, plain.Clip(detail), plain.Clip(do)})
}

// Count returns how many findings have a status.
func (fs Findings) Count(status Status) (n int) {
	for _, f := range fs {
		if f.Status == status {
			n++
		}
	}
	return n
}

// Text writes a table: what was found, and below each line what to do about it.
func (fs Findings) Text(w io.Writer) error {
	width := 0
	for _, f := range fs {
		width = max(width, len(f.Check))
	}
	for _, f := range fs {
		if _, err := fmt.Fprintf(w, "%-8s %-*s  %s\n", f.Status, width, f.Check, f.Detail); err != nil {
			return err
		}
		if f.Do == "" {
			continue
		}
		if _, err := fmt.Fprintf(w, "%*s-> %s\n", width+11, "", f.Do); err != nil {
			return err
		}
	}
	return nil
}

// JSON writes one document per line.
func (fs Findings) JSON(w io.Writer) error {
	e := json.NewEncoder(w)
	e.SetEscapeHTML(false) // people read it, too
	for _, f := range fs {
		if err := e.Encode(f); err != nil {
			return err
		}
	}
	return nil
}
