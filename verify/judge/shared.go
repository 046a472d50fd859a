package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"blobfeed/internal/plain"
	"blobfeed/verify"
)

// writer is how records name the bridge that wrote them in a topic to which several write (BRIDGE_TOPIC_SHARED=true): a
// record its account, a marker its feed. Keys do not name the account, and a marker holds for the records of its own
// feed only, so each bridge is judged alone.
type writer struct{ account, feed string }

// writer returns how the judged bridge is named, or nil if the settings let no other bridge write to the topics. Feed
// is what its state names, or "".
func (o *Options) writer(feed string) (*writer, error) {
	if !o.Topics.Shared {
		return nil, nil
	}
	w := &writer{strings.ToLower(o.Account), cmp.Or(feed, o.Feed.ID)}
	if host, path, _ := strings.Cut(w.feed, "/"); w.account == "" && host != "file:" {
		w.account = plain.AccountName(host, path)
	}
	const why = "BRIDGE_TOPIC_SHARED=true, and %s: %s"
	switch {
	case w.feed == "":
		return nil, plain.SettingsErrorf(why, "no state names the feed whose records are judged",
			"add --feed, with BRIDGE_SOURCE_URL")
	case w.account == "":
		return nil, plain.SettingsErrorf(why, "feed "+w.feed+" does not name the account whose records are judged",
			"set BRIDGE_SOURCE_ACCOUNT")
	case !contentOf(o.Record).account:
		return nil, fmt.Errorf(why, "with these settings a record does not name its account",
			"write shared topics with BRIDGE_HEADERS=cloudevents")
	}
	return w, nil
}

// fits rejects a feed of another account than the one whose records are judged.
func (w *writer) fits(r verify.Record) error {
	if account := r.Account(); account != w.account {
		return plain.SettingsErrorf("the feed has an event of account %s, not %s: set BRIDGE_SOURCE_ACCOUNT=%[1]s",
			account, w.account)
	}
	return nil
}

// portion separates the records of the judged bridge in a topic to which several write.
type portion struct {
	of      *writer
	others  map[writer]*wrote
	unnamed int64 // markers without a feed, of any of several bridges
}

// wrote is what a writer has in a topic, from first on.
type wrote struct {
	otherReport
	first verify.Failure
}

func (p *portion) reset() { *p = portion{of: p.of, others: map[writer]*wrote{}} }

// takes reports whether a record is of the judged bridge. It counts all others. Without BRIDGE_TOPIC_SHARED, a bridge
// writes markers that name no feed.
func (p *portion) takes(r *verify.Record) bool {
	var by writer
	if r.Key != nil {
		by.account = r.Account()
	} else if by.feed = string(r.Header("feed")); by.feed == "" && r.MarkerTime() != "" {
		p.unnamed++
		return false
	}
	if r.Key != nil && by.account == p.of.account || by.feed == p.of.feed {
		return true
	}
	w := p.others[by]
	if w == nil {
		w = &wrote{otherReport{Account: by.account, Feed: by.feed},
			verify.Failure{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: string(r.Key)}}
		p.others[by] = w
	}
	if r.Key == nil {
		w.Markers++
	} else {
		w.Records++
	}
	return false
}

// share reports what other bridges wrote to the topic, and what names no bridge, which is a failure.
func (r *Report) share(t *topic) {
	parts := []*portion{t.portion}
	if t.markerTopic != nil {
		parts = append(parts, t.markerTopic.portion)
	}
	foreign := checkReport{Name: "foreign", Status: Holds,
		Promise: "each record names its account, and each marker its feed", Checked: r.Records + r.Markers}
	byName := func(a, b writer) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.feed, b.feed))
	}
	for _, p := range parts {
		for _, by := range slices.SortedFunc(maps.Keys(p.others), byName) {
			w := p.others[by]
			if foreign.Checked += w.Records + w.Markers; by == (writer{}) {
				w.first.Problem = fmt.Sprintf("the first of %s without an account: set BRIDGE_HEADERS=cloudevents for "+
					"each bridge on the topic; and of %s with neither a key nor the time of a marker",
					plain.Count(w.Records, "record"), plain.Count(w.Markers, "record"))
				foreign.judge(foreign.Checked, []verify.Failure{w.first})
				continue
			}
			r.Others = append(r.Others, w.otherReport)
		}
		if p.unnamed > 0 {
			r.doubtMarkers(fmt.Sprintf("several bridges can have written %s without a feed, "+
				"from before BRIDGE_TOPIC_SHARED was set", plain.Count(p.unnamed, "marker")))
		}
	}
	r.Checks = append(r.Checks, foreign)
}

// doubtMarkers replaces the result of a check of markers that can't be sure.
func (r *Report) doubtMarkers(reason string) {
	i := slices.IndexFunc(r.Checks, func(c checkReport) bool { return c.Name == "resolved" })
	if c := &r.Checks[i]; c.Status != NotChecked || c.Reason == "" {
		c.Status, c.Reason, c.Failures = NotChecked, reason, nil
		r.Problem = cmp.Or(r.Problem, c.Name+": "+reason)
	}
}
