// Package check tries what a bridge needs of its surroundings: the feed, the brokers, their topics and the schema
// registry. It writes nothing. What it finds is a list of lines, each with what to do about it.
package check

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
	"blobfeed/source"
	"blobfeed/source/azure"
)

// Bridge is the bridge whose surroundings are checked.
type Bridge struct {
	Options      *bridge.Options
	Record       envelope.Options
	Azure        *azure.Config // nil: the feed is elsewhere
	Dir          string        // with a copy of the feed; "": the feed is elsewhere
	Kafka        *kafka.Client
	Registry     *kafka.Registry // nil: none is needed
	Insecure     []error         // settings that leave something unencrypted or unchecked
	LongestTopic int             // bytes of the longest name that the template can make

	sample []source.Event   // the first of the feed
	lacks  []source.Segment // of a copy: run stops there, if it has not delivered them
}

// Run tries what the bridge needs of the feed, the brokers and the registry. It writes nothing. An error is one of the
// settings; everything else is a finding.
func Run(ctx context.Context, b *Bridge, now time.Time) (Findings, error) {
	var fs Findings
	unreachable := fs.feed(ctx, b, now)
	if b.Azure != nil {
		fs.version(ctx, b.Azure)
		fs.rights(ctx, b.Azure, scans(b.Options), now)
	}
	if !unreachable {
		fs.scan(ctx, b.Options)
	}
	for _, danger := range b.Insecure {
		text, do := plain.SplitRemedy(danger)
		fs.Add("security", Warning, text, do)
	}
	fs.escaped(b.Options)
	if len(b.Kafka.Brokers) == 0 {
		fs.Add("kafka", Failed, "BRIDGE_KAFKA_BROKERS is not set",
			"set it to host:port of some brokers, comma separated")
		return fs, b.registry(ctx, &fs)
	}
	ck, err := newChecker(b, now, &fs)
	if err != nil {
		return nil, err
	}
	defer ck.cl.Close()
	ck.kafka(ctx)
	if err := b.registry(ctx, &fs); err != nil {
		return nil, err
	}
	if fs.Count(Failed) == 0 { // a failure may be why the state can't be read
		ck.state(ctx)
		ck.overdue(ctx)
	}
	ck.stops(ctx)
	return fs, nil
}

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
