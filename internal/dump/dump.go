// Package dump prints what others keep in files and topics: segments, chunks and events of a feed, and the state of a
// bridge.
package dump

import (
	"encoding/json"
	"fmt"
	"io"

	"blobfeed/internal/plain"
)

// Dumper prints documents to Out: as JSON, one a line, or as text.
type Dumper struct {
	Out  io.Writer
	JSON bool
}

// print writes a document as JSON, or as text.
func (d Dumper) print(doc any, format string, args ...any) error {
	if !d.JSON {
		for i, a := range args {
			if text, ok := a.(string); ok {
				args[i] = plain.Line(text) // a line break in a name must not forge a line
			}
		}
		_, err := fmt.Fprintf(d.Out, format+"\n", args...)
		return err
	}
	return json.NewEncoder(d.Out).Encode(doc)
}
