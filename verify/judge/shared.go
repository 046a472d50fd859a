package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"blobfeed/internal/catalog"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/verify"
)

// sharing distinguishes the bridges that write to one topic (BRIDGE_TOPIC_SHARED=true). Each is judged alone, because
// keys do not name the account, and a marker holds for the records of its own feed only.
type sharing struct {
	claims        claims
	name          string // of the judged bridge
	markers       string // its BRIDGE_RESOLVED_TO
	feed, account string // of the judged bridge
	others        []offsets.Claim
	hidden        []error // why some states can't be read, so that the topics of their bridges are unknown
}

// claims returns what the states of bridges with other names say, and why some can't be read.
type claims func(ctx context.Context, own string) (claims []offsets.Claim, hidden []error, err error)

// newSharing returns nil if the settings let no other bridge write to the topics. Feed is what the state of the judged
// bridge names, or "".
func newSharing(ctx context.Context, o *Options, feed string, claims claims) (*sharing, error) {
	if !o.Topics.Shared {
		return nil, nil
	}
	s := &sharing{claims: claims, name: o.Name, markers: o.Records.Markers.String(), feed: cmp.Or(feed, o.Feed.ID)}
	if s.account = strings.ToLower(o.Account); s.account == "" {
		s.account = accountOf(s.feed)
	}
	const why = "BRIDGE_TOPIC_SHARED=true, and %s: %s"
	switch {
	case s.feed == "":
		return nil, unusable(why, "no state names the feed whose records are judged",
			"add --feed, with BRIDGE_SOURCE_URL")
	case s.account == "":
		return nil, unusable(why, "feed "+s.feed+" does not name the account whose records are judged",
			"set BRIDGE_SOURCE_ACCOUNT")
	case !contentOf(o.Record).account:
		return nil, fmt.Errorf(why, "with these settings a record does not name its account",
			"write shared topics with BRIDGE_HEADERS=cloudevents")
	}
	return s, s.read(ctx)
}

// fits rejects a feed of another account than the one whose records are judged.
func (s *sharing) fits(r verify.Record) error {
	if account := r.Account(); account != s.account {
		return unusable("the feed has an event of account %s, not %s: set BRIDGE_SOURCE_ACCOUNT=%[1]s",
			account, s.account)
	}
	return nil
}

// read reads the states of other bridges.
func (s *sharing) read(ctx context.Context) (err error) {
	s.others, s.hidden, err = s.claims(ctx, s.name)
	return err
}

// on returns the other bridges that write to a topic.
func (s *sharing) on(topic string) (all []offsets.Claim) {
	for _, c := range s.others {
		if slices.Contains(catalog.RecordTopics(&c), topic) {
			all = append(all, c)
		}
	}
	return all
}

// accountOf returns the account that the identity of a feed names. It is "" for a directory and for a custom domain.
func accountOf(feed string) string {
	host, path, _ := strings.Cut(feed, "/")
	if host == "file:" {
		return ""
	}
	return plain.AccountName(host, path)
}

// writer is how a record names the bridge that wrote it: a record its account, a marker its feed.
type writer struct{ account, feed string }

// wrote counts what a writer has in a topic; first is where it starts.
type wrote struct {
	records, markers int64
	first            verify.Failure
}

// portion separates the records of the judged bridge in a topic to which several write.
type portion struct {
	of      *sharing
	topic   string         // of the records
	own     map[int32]bool // partitions with records or markers of the judged bridge
	others  map[writer]*wrote
	unnamed int64 // markers without a feed, of any of several bridges
	sole    bool  // only this bridge can have written a marker that names no feed
}

// portion returns the portion of a topic. Without BRIDGE_TOPIC_SHARED, a bridge writes markers that name no feed.
func (s *sharing) portion(topic string) *portion {
	sole := len(s.hidden) == 0 && !slices.ContainsFunc(s.on(topic), func(c offsets.Claim) bool {
		return c.Settings[offsets.FrozenMarkers] == s.markers
	})
	p := &portion{of: s, topic: topic, sole: sole}
	p.reset()
	return p
}

func (p *portion) reset() {
	p.own, p.others, p.unnamed = map[int32]bool{}, map[writer]*wrote{}, 0
}

// takes reports whether a record is of the judged bridge. It counts all others.
func (p *portion) takes(r *verify.Record) bool {
	var by writer
	feed := r.Header("feed")
	switch {
	case r.Key != nil:
		by.account = r.Account()
	case feed != nil:
		by.feed = string(feed)
	case r.MarkerTime() != "" && p.sole:
		by.feed = p.of.feed
	case r.MarkerTime() != "":
		p.unnamed++
		return false
	}
	if r.Key != nil && by.account == p.of.account || by.feed == p.of.feed {
		p.own[r.Partition] = true
		return true
	}
	w := p.others[by]
	if w == nil {
		w = &wrote{first: verify.Failure{Topic: r.Topic, Partition: r.Partition, Offset: r.Offset, Key: string(r.Key)}}
		p.others[by] = w
	}
	if r.Key == nil {
		w.markers++
	} else {
		w.records++
	}
	return false
}

// bridgeOf returns the name of the bridge that is a writer to the topic, or "". Maybe is a bridge that can be the
// writer, because the account of its feed is unknown.
func (p *portion) bridgeOf(by writer) (name, maybe string) {
	for _, c := range p.of.on(p.topic) {
		switch account := accountOf(c.Feed); {
		case by.feed != "" && by.feed == c.Feed, by.account != "" && by.account == account:
			return c.Name, ""
		case by.account != "" && account == "":
			maybe = c.Name
		}
	}
	return "", maybe
}

// share reports what other bridges wrote to the topic, and what no known bridge wrote, which is a failure.
func (r *Report) share(ctx context.Context, t *topic) error {
	parts := []*portion{t.portion}
	if t.beside != nil {
		parts = append(parts, t.beside.portion)
	}
	foreign := checkReport{Name: "foreign", Status: Holds,
		Promise: "each record and marker is of a known bridge", Checked: r.Records + r.Markers}
	for _, p := range parts {
		if slices.ContainsFunc(p.writers(), p.unknown) { // a bridge may have started since the states were read
			if err := p.of.read(ctx); err != nil {
				return err
			}
		}
		for _, by := range p.writers() {
			w := p.others[by]
			foreign.Checked += w.records + w.markers
			if p.unknown(by) {
				foreign.strange(by, w, r.Topic)
				continue
			}
			name, maybe := p.bridgeOf(by)
			name = cmp.Or(name, "perhaps "+maybe)
			r.Others = append(r.Others, otherReport{name, by.account, by.feed, w.records, w.markers})
		}
		if p.unnamed > 0 {
			r.doubt("resolved", fmt.Sprintf("several bridges can have written %s without a feed, "+
				"from before BRIDGE_TOPIC_SHARED was set", plain.Count(p.unnamed, "marker")))
		}
	}
	r.Checks = append(r.Checks, foreign)
	if hidden := t.portion.of.hidden; foreign.Status == Broken && len(hidden) > 0 {
		r.doubt(foreign.Name, fmt.Sprintf("their bridge may be one whose state can't be read: %v", hidden[0]))
	}
	return nil
}

// strange adds a failure for records or markers that no known bridge wrote.
func (c *checkReport) strange(by writer, w *wrote, topic string) {
	problem := fmt.Sprintf("the first of %s of account %s, which no bridge on the topic reads",
		plain.Count(w.records, "record"), by.account)
	switch {
	case by.feed != "":
		problem = fmt.Sprintf("the first of %s of feed %s, which no bridge on the topic reads",
			plain.Count(w.markers, "marker"), by.feed)
	case w.records > 0 && by.account == "":
		problem = fmt.Sprintf("the first of %s without an account: "+
			"set BRIDGE_HEADERS=cloudevents for each bridge on the topic", plain.Count(w.records, "record"))
	case by.account == "":
		problem = fmt.Sprintf("the first of %s with neither a key nor the time of a marker",
			plain.Count(w.markers, "record"))
	}
	at := w.first
	at.Problem = problem
	c.judge(c.Checked, []verify.Failure{at}, topic)
}

// doubt replaces the result of a check that can't be sure.
func (r *Report) doubt(check, reason string) {
	for i := range r.Checks {
		c := &r.Checks[i]
		if c.Name != check || c.Status == NotChecked && c.Reason != "" {
			continue
		}
		c.Status, c.Reason, c.Failures = NotChecked, reason, nil
		r.Problem = cmp.Or(r.Problem, check+": "+reason)
	}
}

// writers returns the other writers, in a fixed order.
func (p *portion) writers() (all []writer) {
	for by := range p.others {
		all = append(all, by)
	}
	slices.SortFunc(all, func(a, b writer) int {
		return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.feed, b.feed))
	})
	return all
}

func (p *portion) unknown(by writer) bool {
	name, maybe := p.bridgeOf(by)
	return name == "" && maybe == ""
}
