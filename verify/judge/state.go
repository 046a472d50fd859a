package judge

import (
	"cmp"
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/catalog"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/offsets"
	"blobfeed/source"
	"blobfeed/verify"
)

// progressState is the state of the bridge: what it has delivered.
type progressState struct {
	*offsets.State
	topic string // where it is kept
}

// readState reads the offsets topic: the bridge's own, or, if that does not know the topic, that of a replay into it.
// It returns nil if there is none.
func (v *verification) readState(ctx context.Context) (*progressState, error) {
	names := []string{v.Name}
	if name, one := v.Topics.Names.Constant(); v.Topic == "" && one {
		v.Topic = name
	}
	if v.Topic != "" {
		names = append(names, setup.ReplayName(v.Name, v.Topic))
	}
	for _, name := range names {
		s, err := v.cluster.state(ctx, plain.StateTopic(name))
		if err != nil {
			return nil, err
		}
		if s == nil || s.Frontier == nil {
			continue
		}
		found := &progressState{s, plain.StateTopic(name)}
		if counts, _ := found.topics(); v.Topic != "" && counts[v.Topic] == 0 {
			continue
		}
		if err := v.compatible(s.Frontier, name != v.Name); err != nil {
			return nil, err
		}
		if name != v.Name { // a replay has a name and dead letters of its own
			v.Name = name
			if v.Topics.DeadLetter != "" {
				v.Topics.DeadLetter = plain.DeadLetterTopic(name)
			}
		}
		v.pinKeys(s)
		return found, v.interval(s.Frontier)
	}
	return nil, nil
}

// stateless rejects a topic without a state, unless it may be a copy: somebody named it, and no other bridge writes it.
func (v *verification) stateless(ctx context.Context, named bool) error {
	if v.Topic == "" {
		return nil // of a template: openJudged says that there is none
	}
	claims, err := v.cluster.claims(ctx, v.Name)
	if err != nil {
		return err
	}
	for _, c := range claims {
		what, records := "", catalog.RecordTopics(&c)
		switch {
		case v.Topic == plain.DeadLetterTopic(c.Name):
			what = "dead letters, which are verified with the records"
		case slices.Contains(records, v.Topic) && !v.Topics.Shared:
			what = "records"
		case plain.IsMarkerTopic(v.Topic) && slices.Contains(records, plain.RecordTopic(v.Topic)):
			what = "markers, which are verified with the records"
		default:
			continue
		}
		return plain.SettingsErrorf("bridge %s has stored nothing about topic %s. Bridge %s, which reads feed %s, "+
			"writes it: it holds %s. Set %s", v.Name, v.Topic, c.Name, c.Feed, what, v.settingsOf(&c))
	}
	if named {
		return nil
	}
	return plain.SettingsErrorf("no bridge of the name %s has stored anything about topic %s on these brokers: "+
		"check BRIDGE_NAME, BRIDGE_TOPIC and BRIDGE_KAFKA_BROKERS, or judge a copy with --topic %[2]s", v.Name, v.Topic)
}

// settingsOf returns the settings with which the topics of another bridge are judged, as far as its state tells.
func (v *verification) settingsOf(c *offsets.Claim) string {
	all := []string{"BRIDGE_NAME=" + c.Name}
	for _, name := range slices.Sorted(maps.Keys(c.Settings)) {
		recorded := name == offsets.FrozenStart || name == offsets.FrozenEnd
		if have, ok := v.Records.Frozen[name]; ok && !recorded && have != c.Settings[name] {
			all = append(all, name+"="+c.Settings[name])
		}
	}
	return strings.Join(all, ", ")
}

// pinKeys makes encoders use the schema ids that Avro keys were written with: a replay uses those of another topic.
func (v *verification) pinKeys(s *offsets.State) {
	encoder := v.Records.Encoder
	v.Records.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		e, err := encoder(ctx, topic)
		if id := status.KeySchema(s, topic); e != nil && id != 0 {
			e.PinKey(id)
		}
		return e, err
	}
}

// interval uses the end that the bridge, or the replay, recorded. The frontier has its start, too.
func (v *verification) interval(f *offsets.Frontier) (err error) {
	end, recorded := f.Settings[offsets.FrozenEnd]
	if !recorded {
		return nil
	}
	v.Feed.End = envelope.Timestamp{}
	if end != "" {
		v.Feed.End, err = history.ParseEnd(end)
	}
	return err
}

// feed returns the feed that the bridge reads, or "" without a state.
func (s *progressState) feed() string {
	if s == nil {
		return ""
	}
	return s.Frontier.Feed
}

// topics returns the topics that the bridge has written to, and over how many partitions it spreads their keys now. The
// fresh ones are in cursors only.
func (s *progressState) topics() (counts map[string]int32, fresh map[string]bool) {
	if s == nil {
		return nil, nil
	}
	counts, fresh = map[string]int32{}, map[string]bool{}
	maps.Copy(counts, s.Frontier.Topics)
	for _, c := range s.Cursors {
		if c == nil {
			continue
		}
		for topic, pin := range c.Pins {
			if _, known := counts[topic]; !known {
				counts[topic], fresh[topic] = pin.Partitions, true
			}
		}
	}
	return counts, fresh
}

// compatible rejects settings, and a feed, with which the topic was not written.
func (v *verification) compatible(f *offsets.Frontier, replay bool) error {
	if v.ReadFeed && f.Feed != v.Feed.ID {
		return plain.SettingsErrorf("BRIDGE_SOURCE_URL names feed %s, but %s was written from feed %s",
			v.Feed.ID, v.named(), f.Feed)
	}
	for name, have := range f.Settings {
		switch name {
		case offsets.FrozenStart, offsets.FrozenEnd: // the recorded values count
			continue
		case offsets.FrozenTopic:
			if replay || v.Topic != "" {
				continue
			}
		}
		if want, ok := v.Records.Frozen[name]; ok && want != have {
			return plain.SettingsErrorf("%s=%s, but %s was written with %s", name, want, v.named(), have)
		}
	}
	return nil
}

// named returns how messages name the topic, or the topics of a template.
func (v *verification) named() string {
	if v.Topic == "" {
		return v.Records.Frozen[offsets.FrozenTopic]
	}
	return v.Topic
}

// counts returns what the bridge has counted.
func counts(s *offsets.State) (all offsets.Counts) {
	for _, c := range s.Cursors {
		if c != nil {
			all.Add(c.Counts)
		}
	}
	return all
}

// sought says which events seeks may have skipped: those may be in a topic or not.
type sought struct {
	all   []move             // nil: not all are known
	holes []offsets.Stretch  // that they have left out by the state, which forgets some of many
	start envelope.Timestamp // events before it were left out by the first start; zero: none
	last  history.Target     // of the last seek
	at    envelope.Timestamp // of its marker; zero: it repeats none
}

// move is a seek.
type move struct {
	from     source.Segment // where delivery stood; zero: nowhere
	to       history.Target
	resolved envelope.Timestamp // by then
}

// skips reports whether an event may have been skipped. A seek back skips nothing: what was delivered before is still
// required. If not all seeks are known, an event may have been skipped before the target of the last one, or in a hole.
// The segment where delivery stood was complete if its own marker, says, was written by then.
func (s *sought) skips(seg source.Segment, says, at envelope.Timestamp) bool {
	if s.all == nil {
		return s.last.After(seg, at) || s.leaves(seg)
	}
	if at.Compare(s.start) < 0 {
		return true
	}
	for _, m := range s.all {
		complete := seg == m.from && says.Compare(m.resolved) <= 0
		if seg.Compare(m.from) >= 0 && !complete && m.to.After(seg, at) {
			return true
		}
	}
	return false
}

// leaves reports whether seeks have left a segment out, also one that was begun, by the state.
func (s *sought) leaves(seg source.Segment) bool {
	return slices.ContainsFunc(s.holes, func(h offsets.Stretch) bool { return h.Has(seg) })
}

// seeks returns the seeks that the state and the markers name.
func (p *feedScan) seeks(ctx context.Context, judged []*judgedTopic) (s sought, err error) {
	if p.v.state != nil && p.v.state.Frontier.Epoch == 0 {
		return s, nil
	}
	var named []string // by the topic whose markers name most of them: another one may be newer than some
	var at []envelope.Timestamp
	for _, t := range judged {
		first := func(r verify.Record) (more bool) { return r.Partition == 0 } // a seek marks all of them alike
		if err := t.readAll(ctx, first); err != nil {
			return s, err
		}
		if len(t.seeks) > len(named) {
			named, at = t.seeks, t.soughtAt
		}
	}
	if p.v.state == nil {
		s.all, _ = moves(named, at)
		return s, nil
	}
	f := p.v.state.Frontier
	if f.Seek != nil && !f.Seek.Told {
		named = append(named[:len(named):len(named)], cmp.Or(f.Seek.From.String(), "-")+" "+f.Seek.To)
		promised, _ := envelope.ParseTimestamp(f.Resolved) // zero before the first marker
		at = append(at[:len(at):len(at)], promised)
	}
	if len(at) > 0 {
		s.at = at[len(at)-1]
	}
	s.holes = f.Skipped()
	known, last := moves(named, at)
	text := cmp.Or(last, f.Start)
	if f.Seek != nil {
		text = f.Seek.To
	}
	if s.last, err = history.ParseTarget(cmp.Or(text, "earliest")); err != nil {
		return s, err
	}
	start := f.Settings[offsets.FrozenStart]
	if start != "" && start != "earliest" {
		if s.start, err = history.ParseTime(start); err != nil {
			return s, nil // latest: nobody knows any more when that was
		}
	}
	if int64(len(known))+f.Replaced >= f.Epoch { // a repair or a reset has no marker
		s.all = known
	}
	return s, nil
}

// moves returns the seeks that markers name, and where the last one went. A text that is none is a fault of its marker.
func moves(named []string, resolved []envelope.Timestamp) (all []move, last string) {
	for i, seek := range named {
		from, to, _ := strings.Cut(seek, " ")
		at, err := source.ParseSegment(strings.TrimPrefix(from, "-"))
		target, wrong := history.ParseTarget(to)
		if err == nil && wrong == nil {
			all, last = append(all, move{at, target, resolved[i]}), to
		}
	}
	return all, last
}

// journeys says where seeks went, with times as people write them.
func journeys(seeks []string) string {
	var all []string
	for _, seek := range seeks {
		from, to, _ := strings.Cut(seek, " ")
		if at, err := envelope.ParseTimestamp(to); err == nil {
			to = day(at)
		}
		all = append(all, "from "+from+" to "+to)
	}
	return strings.ReplaceAll(strings.Join(all, ", "), "from - ", "")
}

// initialScan returns the initial scan, if the state still has it: later scans replace it.
func (s *progressState) initialScan() *offsets.Scan {
	if s == nil || s.Frontier.Scan == nil || !s.Frontier.Scan.Initial {
		return nil
	}
	return s.Frontier.Scan
}

// scansOnly reports whether the bridge delivers no event.
func (s *progressState) scansOnly() bool {
	scan := s.initialScan()
	return scan != nil && scan.Only
}

// knowScan passes the validator what the state says of the initial scan.
func (s *judgedTopic) knowScan() {
	if scan := s.v.state.initialScan(); scan != nil {
		s.checks.scan.Initial(scan.ID, scan.Listed)
	}
}

// formerScans is how many scans before the last one a state has, at least if there were more.
const formerScans = 10

// knowScans passes the validator the scans that there can be, and how many rows they have. Also one counts that has
// begun since the state was read. A reset forgets scans.
func (s *judgedTopic) knowScans(now *offsets.State) {
	var ids []string
	if scan := now.Frontier.Scan; scan != nil {
		ids = append(ids, scan.ID)
		for _, f := range scan.Former {
			ids = append(ids, f.ID)
		}
	}
	if now.Frontier.Born != 0 || len(ids) > formerScans {
		return
	}
	rows := counts(now).Scanned
	if !s.v.Kafka.Transactional { // a row may come twice
		rows = math.MaxInt64
	}
	s.checks.scan.Known(rows, ids...)
}

// fedFrom returns when the first segment began that the bridge has delivered after an initial scan; zero without such a
// scan.
func (s *judgedTopic) fedFrom() (time.Time, error) {
	text := ""
	scan := s.v.state.initialScan()
	if scan != nil && scan.Begin != (source.Segment{}) {
		return scan.Begin.Time(), nil
	} else if scan != nil {
		text = scan.Updated
	}
	for _, r := range s.heads { // rows are the first records of their partition
		if scan == nil {
			text = max(text, r.BeforeFeed())
		}
	}
	if text == "" {
		return time.Time{}, nil
	}
	updated, err := envelope.ParseTimestamp(text)
	return time.Unix(0, updated.Wall+int64(s.v.Records.ResolvedSlack)), err
}

// barred reports whether a marker would have been below the end of the initial scan's listing.
func (s *judgedTopic) barred(at envelope.Timestamp) bool {
	listed, err := envelope.ParseTimestamp(s.checks.scan.Listed())
	return err == nil && at.Wall < listed.Wall+int64(s.pass.v.Records.ResolvedSlack)
}
