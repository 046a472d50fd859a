package judge

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"blobfeed/internal/plain"
	"blobfeed/verify"
)

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
	k := verify.Check{Failures: []verify.Failure{at}, Checked: c.Checked}
	c.judge(k, topic)
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
