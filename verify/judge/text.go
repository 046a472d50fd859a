package judge

import (
	"errors"
	"fmt"
	"strings"

	"blobfeed/internal/plain"
)

// BrokenError says that a topic does not keep promises.
type BrokenError struct{ Checks []string }

func (e *BrokenError) Error() string { return "verification failed: " + strings.Join(e.Checks, ", ") }

// Broken returns the checks that failed.
func (r *Report) Broken() (checks []string) {
	for _, c := range r.Checks {
		if c.Status == Broken {
			checks = append(checks, c.Name)
		}
	}
	return checks
}

// Verdict returns nil if something was checked of each topic, and all of it holds.
func Verdict(rs []*Report) error {
	var failed, problems []string
	for _, r := range rs {
		for _, check := range r.Broken() {
			if len(rs) > 1 {
				check += " of " + r.Topic
			}
			failed = append(failed, check)
		}
		if r.Problem != "" {
			problems = append(problems, r.Problem)
		}
	}
	switch {
	case failed != nil:
		return &BrokenError{failed}
	case problems != nil:
		return errors.New("could not be checked: " + strings.Join(problems, "; "))
	}
	return nil
}

// Text returns the report for people.
func (r *Report) Text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "topic %s: %s and %s on %s\n", r.Topic,
		plain.Count(r.Records, "record"), plain.Count(r.Markers, "marker"), plain.Count(r.Partitions, "partition"))
	for _, s := range r.Scans {
		kind := "scan"
		if s.Initial {
			kind = "initial scan"
		}
		fmt.Fprintf(&b, "%s %s wrote %s of the records\n", kind, s.ID, plain.Number(s.Rows))
	}
	if f := r.Feed; f != nil {
		fmt.Fprintf(&b, "feed: %s, %s for the topic, %s of them must be in it", plain.Count(f.Read, "event"),
			plain.Number(f.Given), plain.Number(f.Required))
		if f.UpTo != "" {
			fmt.Fprintf(&b, ", by %s", f.UpTo)
		}
		b.WriteByte('\n')
		if d := f.DeadLetters; d != nil {
			fmt.Fprintf(&b, "topic %s: %s with %s of the feed and %s of %s\n", d.Topic,
				plain.Count(d.Letters, "dead letter"), plain.Count(d.Events, "event"),
				plain.Count(d.Places, "damaged place"), plain.Count(d.Bytes, "byte"))
		}
	}
	for i := range r.Others {
		fmt.Fprintf(&b, "not judged: %s\n", &r.Others[i])
	}
	var without []string
	for _, c := range r.Checks {
		switch c.Status {
		case NotChecked:
			without = append(without, fmt.Sprintf("%s (%s)", c.Name, c.Reason))
		default:
			status := map[string]string{Holds: "holds", Broken: "BROKEN"}[c.Status]
			fmt.Fprintf(&b, "%-11s  %-9s  %s (%s checked)", status, c.Name, c.Promise, plain.Number(c.Checked))
			if c.Remedy != "" {
				fmt.Fprintf(&b, ": %s", c.Remedy)
			}
			b.WriteByte('\n')
		}
		for _, f := range c.Failures {
			fmt.Fprintf(&b, "    %s\n", f)
		}
	}
	if len(without) > 0 {
		fmt.Fprintf(&b, "not applicable: %s\n", strings.Join(without, ", "))
	}
	for _, n := range r.Notes {
		fmt.Fprintf(&b, "note: %s\n", n)
	}
	return b.String()
}

func (f failureReport) String() string {
	var where []string
	if f.Partition != nil {
		if f.Topic != "" {
			where = append(where, f.Topic)
		}
		where = append(where, fmt.Sprintf("partition %d, offset %d", *f.Partition, *f.Offset))
	}
	if f.Key != "" {
		where = append(where, "key "+f.Key)
	}
	if where == nil {
		return f.Problem
	}
	return strings.Join(where, ", ") + ": " + f.Problem
}
