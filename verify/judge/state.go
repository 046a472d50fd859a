package judge

import (
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
		if !v.Topics.Names.Meets(v.Topic) { // the template makes no such topic, so a replay of all topics may have
			var err error
			if v.Topics.Names, err = envelope.NewTopics(v.Topic, v.Account); err != nil {
				return nil, err
			}
		}
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
	if s, err := v.cluster.state(ctx, plain.StateTopic(v.Name)); s != nil && err == nil {
		return plain.SettingsErrorf("bridge %s has delivered nothing since its reset, or a seek before its start: run "+
			"it first, or judge what the topic has with --topic %s", v.Name, v.Topic)
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

// passed is which events the bridge has delivered, by its state.
type passed struct {
	earlier []stretch      // before seeks
	now     stretch        // since the last seek, or the start, as far as the cursors are
	end     source.Segment // of all that
}

// stretch is a part of the feed, without the events before a time.
type stretch struct {
	offsets.Stretch
	from envelope.Timestamp // zero: none is left out
}

func (s stretch) has(seg source.Segment, at envelope.Timestamp) bool {
	return s.Has(seg) && at.Compare(s.from) >= 0
}

// passed returns nil without a state.
func (s *progressState) passed() (*passed, error) {
	if s == nil {
		return nil, nil
	}
	f := s.Frontier
	p := &passed{end: f.Completed}
	for _, e := range append(slices.Clone(f.Earlier), offsets.Stretch{After: f.Since, To: endless, From: f.Start}) {
		from, err := history.ParseStored(e.From)
		if err != nil {
			return nil, err
		}
		p.earlier = append(p.earlier, stretch{e, from})
		if e.To != endless && e.To.Compare(p.end) > 0 {
			p.end = e.To
		}
	}
	last := len(p.earlier) - 1
	p.earlier, p.now = p.earlier[:last], p.earlier[last]
	return p, nil
}

// has reports whether an event was delivered, and whether that was before the last seek only. Covered says that the
// cursors are behind it.
func (p *passed) has(seg source.Segment, at envelope.Timestamp, covered bool) (delivered, before bool) {
	if p == nil || covered && p.now.has(seg, at) {
		return covered, false
	}
	before = slices.ContainsFunc(p.earlier, func(s stretch) bool { return s.has(seg, at) })
	return before, before
}

// skips reports whether the bridge is behind an event that was not delivered, as far as it is known.
func (p *passed) skips(seg source.Segment) bool { return p != nil && seg.Compare(p.end) <= 0 }

// sought says which events seeks may have skipped by the markers, where the state does not know it.
type sought struct {
	all []move
	// Up to the marker of --until-resolved, with a state: the first event and marker. What is before them was
	// delivered behind that marker, or is lost.
	start, first envelope.Timestamp
	at           envelope.Timestamp // of the marker of the last seek; zero: it repeats none
}

// move is a seek.
type move struct {
	from     source.Segment // where delivery stood; zero: nowhere
	to       history.Target
	resolved envelope.Timestamp // by then
}

// skips reports whether an event may have been skipped. A seek back skips nothing: what was delivered before is still
// required. The segment where delivery stood was complete if its own marker, says, was written by then.
func (s *sought) skips(seg source.Segment, says, at envelope.Timestamp) bool {
	if at.Compare(s.start) < 0 || says.Compare(s.first) < 0 {
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

// seeks returns the seeks that markers name. A state knows what was delivered, but not what of that is behind the
// marker of --until-resolved, and one of an older version does not know what was delivered before a seek. A round of
// --follow ends with what is there, and needs the last seek only.
func (p *feedScan) seeks(ctx context.Context, judged []*judgedTopic) (s sought, err error) {
	v, until := p.v, false
	if v.state != nil {
		f := v.state.Frontier
		knows := f.Since != (source.Segment{}) || f.Earlier != nil || f.Epoch == f.Born
		if f.Epoch == 0 || knows && v.Until == (envelope.Timestamp{}) {
			return s, nil
		}
		until = v.since == nil && v.Until != (envelope.Timestamp{})
	}
	if until {
		s.start, s.first = v.Until, v.Until
	}
	var named []string // by the topic whose markers name most of them: another one may be newer than some
	var at []envelope.Timestamp
	for _, t := range judged {
		if err := t.readAll(ctx, func(r verify.Record) (more bool) {
			if !until {
				return r.Partition == 0 // a seek marks all of them alike
			}
			at, marks := markerTime(&r)
			switch {
			case marks:
				s.first = earlier(s.first, at)
			case !r.Scanned():
				s.start = earlier(s.start, timeOf(&r))
			}
			return !marks || at.Compare(v.Until) < 0
		}); err != nil {
			return s, err
		}
		if len(t.seeks) > len(named) {
			named, at = t.seeks, t.soughtAt
		}
	}
	if len(at) > 0 {
		s.at = at[len(at)-1]
	}
	if v.since == nil {
		s.all = moves(named, at)
	}
	return s, nil
}

func earlier(a, b envelope.Timestamp) envelope.Timestamp {
	return slices.MinFunc([]envelope.Timestamp{a, b}, envelope.Timestamp.Compare)
}

// moves returns the seeks that markers name. A text that is none is a fault of its marker.
func moves(named []string, resolved []envelope.Timestamp) (all []move) {
	for i, seek := range named {
		from, to, _ := strings.Cut(seek, " ")
		at, err := source.ParseSegment(strings.TrimPrefix(from, "-"))
		target, wrong := history.ParseTarget(to)
		if err == nil && wrong == nil {
			all = append(all, move{at, target, resolved[i]})
		}
	}
	return all
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
