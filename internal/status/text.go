package status

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/plain"
	"blobfeed/source"
)

// Text returns the report for people.
func (s *Status) Text() string {
	var b strings.Builder
	b.WriteString(s.Verdict.Text + "\n")
	if s.Verdict.Remedy != "" {
		fmt.Fprintf(&b, "-> %s\n", s.Verdict.Remedy)
	}
	fmt.Fprintf(&b, "\n%s at %s\n", s.Name, s.Now.Format(time.RFC3339))
	if !s.Started {
		b.WriteString("has no progress: its next start is a first start\n")
	} else {
		p := s.Position
		fmt.Fprintf(&b, "feed      %s\n", s.Feed)
		b.WriteString("segment   ")
		at := []string{p.Current, "complete up to " + p.Completed}
		switch {
		case p.named() && p.Current == "":
			at = at[1:]
		case !p.named():
			at = []string{cmp.Or(p.Current, "none is begun yet")}
		}
		b.WriteString(strings.Join(at, ", "))
		if p.Ended {
			b.WriteString(", ended at BRIDGE_END_TIME")
		}
		if p.Gaps > 0 {
			fmt.Fprintf(&b, ", history lost %s", plain.Count(p.Gaps, "time"))
		}
		if p.Seek != nil {
			b.WriteString(", after a seek to " + Place(p.Seek.To))
		}
		for i, s := range p.Skipped {
			next := cmp.Or(Place(s.From), source.SegmentAt(s.To.Time().Add(time.Minute)).String())
			b.WriteString([]string{"\nskipped   by bridge seek, what the feed has ", "; "}[min(i, 1)])
			fmt.Fprintf(&b, "after %s and before %s", s.After, next)
		}
		fmt.Fprintf(&b, "\nresolved  %s\nevent     %s\nahead     %s\n",
			moment(p.Resolved, s.Now), moment(p.Event, s.Now), s.ahead())
		n := s.Totals
		fmt.Fprintf(&b, "events    %s read, %s, %s filtered, %s late, %s\n",
			plain.Number(n.Read), plain.Count(n.Emitted, "record"), plain.Number(n.Filtered), plain.Number(n.Late),
			plain.Count(n.DeadLettered, "dead letter"))
		if n.Unknown > 0 {
			fmt.Fprintf(&b, "unknown   %s filtered whose type is unknown and may change blobs; "+
				"the log names the types, BRIDGE_EVENTS=all delivers them\n", plain.Count(n.Unknown, "event"))
		}
		if s.Hint != "" {
			fmt.Fprintf(&b, "hint      %s\n", s.Hint)
		}
		if s.Scan != nil {
			fmt.Fprintf(&b, "scan      %s\n", plain.Line(s.Scan.Text(s.Now)))
			for i := range s.Former {
				fmt.Fprintf(&b, "before    %s\n", plain.Line(s.Former[i].Text(s.Now)))
			}
		}
		b.WriteString(topicLines(s.Topics))
	}
	fmt.Fprintf(&b, "group     %s, %s\n", cmp.Or(s.Group.State, "-"), plain.Count(len(s.Group.Members), "member"))
	for _, m := range s.Group.Members {
		fmt.Fprintf(&b, "  %s at %s, leases %s\n", plain.Line(m.Instance), plain.Line(cmp.Or(m.Host, "-")),
			strings.Trim(fmt.Sprint(m.Leases), "[]"))
	}
	b.WriteString(leaseTable(s))
	for _, e := range s.Errors { // they may be over: the commits since then show it
		since := ""
		if at := s.Leases[e.Lease].Committed; at != nil {
			since = ", with its last commit"
			if apart := at.Sub(e.Time); apart >= reported {
				since = fmt.Sprintf(", %s before its last commit", plain.Span(apart))
			}
		}
		fmt.Fprintf(&b, "last error of lease %d at %s%s: %s\n", e.Lease, e.Time.Format(time.RFC3339), since,
			plain.Line(e.Error))
		if e.Remedy != "" {
			fmt.Fprintf(&b, "-> %s\n", plain.Line(e.Remedy))
		}
	}
	return b.String()
}

// ahead describes what is listed and not read.
func (s *Status) ahead() string {
	bytes := s.Lag.Ahead
	switch {
	case s.Verdict.Code == UpToDate && (bytes == nil || *bytes == 0):
		return "nothing: all is delivered"
	case bytes == nil && s.Position.Current == "":
		return "nothing that is begun: an instance looks for more when it runs"
	case bytes == nil:
		return "unknown: no lease has committed in the current segment"
	}
	return plain.Count(*bytes, "byte") + " listed in the segment and not read, at the last commits"
}

// Place describes where delivery begins: a segment, a time in the form of an "updated", or earliest.
func Place(to string) string {
	if at, err := envelope.ParseTimestamp(to); err == nil {
		return time.Unix(0, at.Wall).UTC().Format(time.RFC3339)
	}
	return to
}

func leaseTable(s *Status) string {
	var b strings.Builder
	w := tabwriter.NewWriter(&b, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "lease\tstate\towner\tsegment\tshards\tevents\tahead\tcommitted")
	unused := 0
	for _, l := range s.Leases {
		if l.Segment == "" && l.Owner == "" {
			unused++
			continue
		}
		segment, done := l.Segment, l.Done
		if l.Frontier && s.Position.named() { // complete segments leave no trace in cursors
			segment, done = s.Position.Completed, true
		}
		if segment == "" {
			segment = "-"
		} else if done {
			segment += " done"
		}
		var shards []string
		for _, shard := range slices.Sorted(maps.Keys(l.Shards)) {
			shards = append(shards, shard+":"+l.Shards[shard])
		}
		committed := "-"
		if l.Committed != nil {
			committed = l.Committed.Format(time.RFC3339)
		}
		fmt.Fprintf(w, "%d\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n", l.Lease, l.State, plain.Line(cmp.Or(l.Owner, "-")), segment,
			cmp.Or(strings.Join(shards, " "), "-"), plain.Number(l.Events), plain.Number(l.Ahead), committed)
	}
	_ = w.Flush() // into memory
	if unused > 0 {
		fmt.Fprintf(&b, "%s without work so far\n", plain.Count(unused, "more lease"))
	}
	return b.String()
}

// moment describes a time and its age.
func moment(t *time.Time, now time.Time) string {
	switch {
	case t == nil:
		return "-"
	case t.After(now):
		return t.Format(time.RFC3339) + ", in the future"
	}
	return fmt.Sprintf("%s, %s ago", t.Format(time.RFC3339), plain.Span(now.Sub(*t)))
}

// Of more topics than manyTopics, which a template makes, the report shows how many there are, and some names.
const manyTopics, someTopics = 10, 3

// topicLines returns a line for each topic, or, if there are many, for each number of partitions.
func topicLines(topics []Topic) string {
	var b strings.Builder
	if len(topics) <= manyTopics {
		for _, t := range topics {
			fmt.Fprintf(&b, "topic     %s, %s\n", t.Name, plain.Count(t.Partitions, "partition"))
		}
		return b.String()
	}
	groups := map[int32][]string{}
	var sizes []int32
	for _, t := range topics {
		if groups[t.Partitions] == nil {
			sizes = append(sizes, t.Partitions)
		}
		groups[t.Partitions] = append(groups[t.Partitions], t.Name)
	}
	slices.SortFunc(sizes, func(a, b int32) int {
		return cmp.Or(cmp.Compare(len(groups[b]), len(groups[a])), cmp.Compare(a, b))
	})
	for _, n := range sizes {
		names := groups[n]
		fmt.Fprintf(&b, "topics    %s with %s: %s", plain.Number(len(names)), plain.Count(n, "partition"),
			strings.Join(names[:min(len(names), someTopics)], ", "))
		if more := len(names) - someTopics; more > 0 {
			fmt.Fprintf(&b, ", and %d more (--output json lists all)", more)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
