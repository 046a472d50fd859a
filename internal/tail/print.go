package tail

import (
	"bufio"
	"encoding/json"
	"io"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
)

// Printer writes records, one a line.
type Printer struct {
	JSON    bool // a document a line; else key and value, as Kafka's console consumer prints them
	Headers bool
	TextKey bool   // keys are no JSON
	Letters string // topic whose values are no JSON

	out *bufio.Writer
}

// To sets where to print.
func (p *Printer) To(w io.Writer) { p.out = bufio.NewWriterSize(w, 64<<10) }

// Flush writes what is buffered.
func (p *Printer) Flush() error { return p.out.Flush() }

// Print prints a record.
func (p *Printer) Print(r *kgo.Record) error {
	if p.JSON {
		return p.document(r)
	}
	if p.Headers {
		for i, h := range r.Headers {
			if i > 0 {
				_ = p.out.WriteByte(',') // the writer keeps its error
			}
			_, _ = p.out.WriteString(oneLine.Replace(h.Key + ":" + string(h.Value)))
		}
		_ = p.out.WriteByte('\t')
	}
	p.text(r.Key)
	_ = p.out.WriteByte('\t')
	p.text(r.Value)
	return p.out.WriteByte('\n')
}

// oneLine escapes what ends a column or a line.
var oneLine = strings.NewReplacer("\n", `\u000a`, "\t", `\u0009`)

func (p *Printer) text(b []byte) {
	if b == nil {
		b = []byte("null")
	}
	_, _ = oneLine.WriteString(p.out, string(b))
}

// document prints a record as JSON. A value that is not JSON is a string; so is an empty one.
func (p *Printer) document(r *kgo.Record) error {
	letter := r.Topic == p.Letters
	doc := struct {
		Topic   string            `json:"topic"`
		Time    time.Time         `json:"time"`
		Key     json.RawMessage   `json:"key"`
		Value   json.RawMessage   `json:"value"`
		Headers map[string]string `json:"headers,omitempty"`
	}{Topic: r.Topic, Time: r.Timestamp.UTC()}
	var err error
	if doc.Key, err = raw(r.Key, p.TextKey || letter); err != nil {
		return err
	}
	if doc.Value, err = raw(r.Value, letter); err != nil {
		return err
	}
	if p.Headers {
		doc.Headers = map[string]string{}
		for _, h := range r.Headers {
			doc.Headers[h.Key] = string(h.Value)
		}
	}
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	return e.Encode(doc)
}

func raw(b []byte, text bool) (json.RawMessage, error) {
	switch {
	case b == nil:
		return json.RawMessage("null"), nil
	case text, len(b) == 0:
		return json.Marshal(string(b))
	}
	return b, nil
}
