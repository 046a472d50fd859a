package judge

import (
	"context"
	"errors"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/progress"
	"blobfeed/internal/setup"
	"blobfeed/source"
	"blobfeed/source/dir"
)

// journey is what happens to a bridge: a place is a seek, "run" and "" deliver what the feed has, "grow" adds segments
// to it, and "until" and a segment stops behind that segment.
type journey struct {
	steps   string
	skipped int64 // events that are not in the topic; -1: some
	repeats bool  // or delivers an earlier segment later
}

// By the state, verify requires exactly the events that were delivered, wherever seeks went before or after that, and
// also if nothing has been delivered since the last one.
func TestSeeksByState(t *testing.T) {
	const segment = 24 // events
	journeys := map[string]journey{
		"before the first start":                      {"2026/01/01/0200 run", 2 * segment, false},
		"before the first start, then all":            {"2026/01/01/0200 run earliest run", 0, true},
		"before the first start, to a time":           {"2026-01-01T02:00:00Z run", -1, false},
		"before the first start, to a time, then all": {"2026-01-01T02:56:00Z run earliest run", 0, true},
		"forward":                         {"run grow grow 2026/01/01/0600 run", 2 * segment, false},
		"forward, back":                   {"run grow grow 2026/01/01/0600 run 2026/01/01/0400 run", 0, true},
		"forward, back, not carried out":  {"run grow grow 2026/01/01/0600 run 2026/01/01/0400", 2 * segment, false},
		"forward, back, forward":          {"run grow grow 2026/01/01/0600 run earliest 2026/01/01/0700 run", 2 * segment, true},
		"back, not carried out":           {"run 2026/01/01/0200", 0, false},
		"back, to all":                    {"run earliest", 0, false},
		"back, interrupted":               {"run 2026/01/01/0100 until:2026/01/01/0200", 0, true},
		"back and forward, interrupted":   {"run earliest until:2026/01/01/0000 2026/01/01/0300 run", 0, true},
		"twice, replaced":                 {"run grow 2026/01/01/0500 earliest 2026/01/01/0500 run", segment, false},
		"forward to a time":               {"run grow grow 2026-01-01T06:30:00Z run", -1, false},
		"forward and back to times":       {"run grow grow 2026-01-01T06:30:00Z run 2026-01-01T04:30:00Z run", -1, true},
		"forward to a time, back":         {"run grow grow 2026-01-01T06:30:00Z run 2026/01/01/0400 run", 0, true},
		"back to a time, not carried out": {"run 2026-01-01T02:30:00Z", 0, false},
		"back to a time, interrupted":     {"run 2026-01-01T00:30:00Z until:2026/01/01/0100", 0, true},
	}
	for _, settings := range []string{
		"", "RESOLVED_TO=topic", "RESOLVED_TO=off", "HEADERS=none", "DELIVERY=at_least_once", "START=2026-01-01T01:30:00Z",
	} {
		for name, j := range journeys {
			if testing.Short() && settings != "" {
				continue
			}
			if settings == "RESOLVED_TO=off" && j.repeats { // nothing in the topic names the seek, so that is a fault
				continue
			}
			t.Run(settings+" "+name, func(t *testing.T) { j.judge(t, settings) })
		}
	}
}

// travel returns what the bridge has written then.
func (j *journey) travel(t *testing.T, settings string) *scene {
	f := form{settings: "EVENTS=all DEBUG=bundle_bytes=0 " + settings}
	l, cl, _ := f.open(t, t)
	for _, step := range strings.Fields(j.steps) {
		place, stops := strings.CutPrefix(step, "until:")
		switch {
		case stops:
			deliverUntil(t, place)
		case step == "run":
			deliver(t)
		case step == "grow":
			l.grow(t, 2)
		default:
			seek(t, step)
		}
	}
	return &scene{form: f, topic: written, copied: copyAll(t, cl), base: bySettings(t, written)}
}

func (j *journey) judge(t *testing.T, settings string) {
	s := j.travel(t, settings)
	rs, of := s.verify(t, s.clone(), true, false)
	text := shown(t, rs)
	if Verdict(rs) != nil || of["replay"] != Holds {
		t.Fatalf("%v: %s", Verdict(rs), text)
	}
	events := s.events()
	x := rs[0].Feed
	asked := j.skipped >= 0 && !strings.HasPrefix(settings, "START=") // else some more
	if int(x.Required) != len(events) || asked && x.Skipped != j.skipped {
		t.Errorf("the topic has %d events, and %d must be in it, %d are skipped, want %d: %s", len(events), x.Required,
			x.Skipped, j.skipped, text)
	}
	j.until(t, s)
	step := 11
	if testing.Short() {
		step = 23
	}
	for i := 0; i < len(events); i += step {
		c := s.clone()
		for p, rs := range c.topics[written].records {
			c.topics[written].records[p] = slices.DeleteFunc(rs, func(r *kgo.Record) bool { return eventOf(r) == events[i] })
		}
		if rs, of := s.verify(t, c, true, false); of["replay"] != Broken {
			t.Fatalf("event %s is missing, and that is not found: %s", events[i], shown(t, rs))
		}
	}
}

// until judges the topic up to each of its markers, and as --follow first does. What a later seek has delivered is not
// required then.
func (j *journey) until(t *testing.T, s *scene) {
	bounded := *s
	for _, at := range s.victim(s.copied).times {
		v := *s.base
		v.Until, _ = envelope.ParseTimestamp(at)
		bounded.base = &v
		rs, _ := bounded.verify(t, s.clone(), true, false)
		if errors.As(Verdict(rs), new(*BrokenError)) {
			t.Errorf("until %s: %v: %s", day(v.Until), Verdict(rs), shown(t, rs))
		}
	}
	if rs := (&rounds{base: s.base}).next(t, s.copied); errors.As(Verdict(rs), new(*BrokenError)) {
		t.Errorf("followed: %v: %s", Verdict(rs), shown(t, rs))
	}
}

// A state of an older version does not say what was delivered before a seek. Then the markers do.
func TestStateWithoutStretches(t *testing.T) {
	j := journey{steps: "run grow grow 2026/01/01/0600 run"}
	s := j.travel(t, "")
	const topic = "blobfeed.offsets"
	now := *s.states[topic]
	f := *now.Frontier
	f.Since, f.Earlier, now.Frontier = source.Segment{}, nil, &f
	s.states[topic] = &now
	if rs, of := s.verify(t, s.clone(), true, false); Verdict(rs) != nil || of["replay"] != Holds ||
		rs[0].Feed.Skipped == 0 {
		t.Errorf("%v: %s", Verdict(rs), shown(t, rs))
	}
}

// The events that a seek delivers below a marker are no fault, also if another one breaks the promise of the markers.
func TestLateEventsOfASeek(t *testing.T) {
	j := journey{steps: "run grow grow 2026/01/01/0600 run 2026/01/01/0400 run"}
	s := j.travel(t, "")
	c := s.clone()
	if !faultNamed("a marker is missing on a partition").put(s.victim(c)) {
		t.Fatal("there is no place for it")
	}
	rs, of := s.verify(t, c, true, false)
	if text := shown(t, rs); of["resolved"] != Broken ||
		!strings.Contains(text, "break \"resolved\", those that bridge seek delivers do not\n") {
		t.Error(text)
	}
}

// eventOf identifies an event by what all its records have, "" for markers.
func eventOf(r *kgo.Record) string {
	if r.Key == nil {
		return ""
	}
	return r.Timestamp.String() + string(r.Key) + string(r.Value)
}

// events returns the events that the topic has.
func (s *scene) events() (all []string) {
	for _, rs := range s.topics[written].records {
		for _, r := range rs {
			if r.Key != nil {
				all = append(all, eventOf(r))
			}
		}
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// stopper ends a run behind a segment.
type stopper struct {
	segment string
	stop    context.CancelFunc
}

func (s stopper) Completed(c bridge.Completion) {
	if c.Segment.String() == s.segment {
		s.stop()
	}
}

// upTo is a store whose chunks of later segments are not read: the next segment is named before a run is stopped, and
// what is delivered of it would depend on which is faster.
type upTo struct {
	source.Store
	segment string
}

func (s upTo) ReadAt(ctx context.Context, name string, p []byte, offset int64) (int, error) {
	if rest, is := strings.CutPrefix(name, "log/"); is && rest[len("00/"):] > s.segment+"/~" {
		<-ctx.Done()
		return 0, ctx.Err()
	}
	return s.Store.ReadAt(ctx, name, p, offset)
}

// deliverUntil lets a bridge deliver up to a segment.
func deliverUntil(t *testing.T, segment string) {
	t.Helper()
	if _, err := source.ParseSegment(segment); err != nil {
		t.Fatal(err)
	}
	c := loaded(t)
	o, err := setup.Options(c, setup.Observe{})
	if err != nil {
		t.Fatal(err)
	}
	_, path, _ := strings.Cut(c.SourceURL, "file://")
	feed, err := dir.New(path)
	if err != nil {
		t.Fatal(err)
	}
	o.Feed.Source = source.New(upTo{feed, segment}, source.Options{Copy: true})
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	log, shown := progress.New(c, io.Discard)
	o.Once, o.Log, o.Observer = true, log, bridge.Observers{shown, stopper{segment, cancel}}
	if err := bridge.New(o).Run(ctx, ctx); err != nil && !errors.Is(err, context.Canceled) {
		t.Fatal(err)
	}
}
