package judge

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"blobfeed/internal/plain"
)

// censusShown is how many keys of a topic a report names.
const censusShown = 100

// changing reports whether a key was changed while the two were compared, so that nothing can be said of it.
func (x *difference) changing(began time.Time) bool {
	if x.blob == nil {
		return x.listed
	}
	return !x.blob.Modified.Before(began.Truncate(time.Second))
}

// problem says how the topic and the account differ.
func (x *difference) problem() string {
	topic, account := "no blob", "no blob"
	if !x.row.Deleted {
		topic = describe(x.row.ETag, x.row.Length)
	}
	if x.blob != nil {
		account = describe(x.blob.ETag, x.blob.Length)
	}
	return fmt.Sprintf("the topic has %s, the account %s", topic, account)
}

func describe(etag string, length int64) string {
	return fmt.Sprintf("a blob of %s with etag %s", plain.Count(length, "byte"), cmp.Or(etag, "unknown"))
}

// report adds what was found in a topic.
func (c *census) report(r *Report, s *subject) {
	check := checkReport{Name: "account", Promise: accountPromise, Status: Holds, Checked: c.blobs}
	var pending, changing int
	var bad []*difference
	for _, x := range c.differences {
		switch {
		case x.subject != s:
		case x.pending:
			pending++
		case x.changing(c.began):
			changing++
		default:
			bad = append(bad, x)
		}
	}
	slices.SortFunc(bad, func(a, b *difference) int { return strings.Compare(a.key, b.key) })
	for _, x := range bad[:min(len(bad), censusShown)] {
		check.Failures = append(check.Failures, failureReport{Key: x.key, Problem: x.problem()})
	}
	switch more := len(bad) - censusShown; {
	case more > 0:
		check.Failures = append(check.Failures, failureReport{Problem: "and " + plain.Count(more, "more key")})
		fallthrough
	case len(bad) > 0:
		check.Status, check.Remedy = Broken, "repair the topic with bridge scan --sweep"
	case check.Checked == 0:
		check.Status, check.Reason = NotChecked, "the account has no blob that the settings select"
	}
	r.Checks = append(r.Checks, check)
	if pending > 0 {
		r.note("not judged: %s with events in the feed that are not delivered yet", plain.Count(pending, "key"))
	}
	if changing > 0 {
		r.note("not judged: %s that changed during the comparison; compare again", plain.Count(changing, "key"))
	}
	if s.growth.stale > 0 {
		r.note("%s with an older blob in a former partition: consumers of whole partitions need the highest updated",
			plain.Count(s.growth.stale, "key"))
	}
	if c.lost > 0 && r.Problem == "" {
		r.Problem = fmt.Sprintf("account: %s differed at the first comparison, which was not repeated",
			plain.Count(c.lost, "key"))
	}
}

const accountPromise = "the last record of each key is the blob, or a deletion where there is none"
