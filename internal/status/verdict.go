package status

import (
	"cmp"
	"fmt"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/frozen"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Codes of verdicts.
const (
	UpToDate   = "up_to_date"
	Starting   = "starting"
	CatchingUp = "catching_up"
	Degraded   = "degraded" // something fails, or nobody does what has to be done
	Nobody     = "nobody"   // no instance is running
)

// Verdicts are all codes, the best first.
var Verdicts = []string{UpToDate, CatchingUp, Starting, Degraded, Nobody}

// Verdict says in a line how the bridge is.
type Verdict struct {
	Code   string `json:"code"`
	Text   string `json:"text"`
	Remedy string `json:"remedy,omitempty"` // what to do about it, if that is known
}

// Problem is something that is wrong.
type Problem struct {
	Cause  string `json:"cause"`
	Remedy string `json:"remedy,omitempty"`
}

// String returns both parts in a line.
func (p Problem) String() string {
	if p.Remedy == "" {
		return p.Cause
	}
	return strings.TrimRight(p.Cause, ". ") + ": " + p.Remedy
}

// Line returns the problem without line breaks.
func (p Problem) Line() Problem { return Problem{plain.Line(p.Cause), plain.Line(p.Remedy)} }

// AllWell is the text of a verdict that there is nothing to add to.
const AllWell = "up to date"

// Bad reports whether somebody has to look.
func (v Verdict) Bad() bool { return v.Code == Degraded || v.Code == Nobody }

// behind is how long published events may wait before the bridge is said to catch up.
const behind = time.Minute

// Judge returns the verdict on s. Problems are what is wrong now, the worst first; starting, if not empty, says what
// the bridge waits for before it can do anything. It is the one judge of log, status, page and metrics.
func (s *Status) Judge(starting string, problems []Problem) Verdict {
	halted := s.halted()
	switch {
	case s.Position.Ended:
		return Verdict{Code: UpToDate, Text: AllWell + ": everything up to BRIDGE_END_TIME is delivered"}
	case s.Position.Once != nil && len(halted) > 0:
		return degraded(halted)
	case s.Group.State != "" && len(s.Group.Members) == 0 && s.Position.Once != nil:
		return Verdict{Code: UpToDate, Text: AllWell + ": run --once delivered everything " +
			plain.Span(max(0, s.Now.Sub(*s.Position.Once))) + " ago"}
	case s.Group.State != "" && len(s.Group.Members) == 0:
		return s.nobody()
	case len(problems) > 0:
		return degraded(problems)
	case starting != "":
		return Verdict{Code: Starting, Text: "starting: " + starting}
	case !s.Started:
		return Verdict{Code: Starting, Text: "starting: nothing is delivered yet"}
	case s.Progress != nil && (s.Scan == nil || s.Scan.State != "active" || s.Scan.Initial):
		return Verdict{Code: CatchingUp, Text: s.Progress.String()}
	case s.Lag.Bridge != nil && *s.Lag.Bridge > behind.Seconds():
		return Verdict{Code: CatchingUp, Text: "catching up: events wait for " + plain.Span(inSeconds(*s.Lag.Bridge))}
	}
	if to := s.Position.Seek; to != nil && s.Position.Current == "" {
		return Verdict{Code: Starting, Text: "starting: the feed is searched for a segment from " + Place(to.To) +
			" on, where bridge seek has moved the bridge"}
	}
	if s.Position.sought {
		return Verdict{Code: Starting, Text: "starting: the feed is searched for a segment from " + s.start() + " on"}
	}
	if s.Position.Current == "" && s.Position.Completed == "" { // a new feed takes an hour to its first segment
		return Verdict{Code: Starting, Text: "starting: no segment of the feed is begun yet"}
	}
	if s.Progress != nil { // a scan that is repeated, beside the feed
		return Verdict{Code: UpToDate, Text: AllWell + ", " + s.Progress.String()}
	}
	return Verdict{Code: UpToDate, Text: AllWell}
}

// degraded returns the verdict on problems, the worst first.
func degraded(problems []Problem) Verdict {
	worst := problems[0].Line()
	text := "degraded: " + worst.Cause
	if n := len(problems) - 1; n > 0 {
		text += fmt.Sprintf(" (and %d more)", n)
	}
	return Verdict{Degraded, text, worst.Remedy}
}

// reported is the time within which an instance commits an error as the last one of a lease.
const reported = time.Second

// nobody returns the verdict on a bridge without an instance, with the error that came last, if any, and the place
// where bridge seek makes the next instance begin. Whether the feed has that place is not in Kafka.
func (s *Status) nobody() Verdict {
	text, do, failed := s.last()
	if p := s.Position; p.Seek != nil && p.Current == "" && p.Beyond == "" {
		text += ", and delivery will begin at " + Sought(p.Seek.To)
	}
	if do == "" && !failed {
		do = "start an instance with bridge run"
	}
	return Verdict{Code: Nobody, Text: "nobody is running: " + text, Remedy: do}
}

// Sought describes the place of a seek.
func Sought(to string) string {
	if to = Place(to); to == "earliest" {
		to = "the oldest segment"
	}
	return to + ", where bridge seek has moved the bridge"
}

// AwayFrom returns the verdict on a bridge that nobody runs at this moment, although an instance runs others of its
// settings file: between its attempts, a bridge that fails is not a member of its group.
func (s *Status) AwayFrom(instance string) Verdict {
	text, do, _ := s.last()
	return degraded([]Problem{{
		Cause:  "not running now, although instance " + instance + " runs other bridges of the file: " + text,
		Remedy: cmp.Or(do, "look at the page or the log of that instance: it may have failed and start again"),
	}})
}

// last returns what the state has of the instances that are gone, whether an error came last, and what to do about it.
func (s *Status) last() (text, do string, failed bool) {
	var last *time.Time
	for _, l := range s.Leases {
		if l.Committed != nil && (last == nil || l.Committed.After(*last)) {
			last = l.Committed
		}
	}
	if text = "no instance has delivered anything yet"; last != nil {
		text = "the last commit was " + plain.Span(max(0, s.Now.Sub(*last))) + " ago"
	}
	if len(s.Errors) > 0 && last != nil && last.Sub(s.Errors[0].Time) < reported {
		why := Problem{s.Errors[0].Error, s.Errors[0].Remedy}.Line()
		return text + ", and the last error: " + why.Cause, why.Remedy, true
	}
	if grown := s.grown(); grown.Cause != "" { // an instance alone would mend neither
		return text + ", and " + grown.Cause, grown.Remedy, false
	}
	beyond := s.Position.Lacking()
	if beyond.Cause != "" {
		text += ", and " + beyond.Cause
	}
	if beyond.Remedy == MoveBack {
		beyond.Remedy += ", then start an instance with bridge run"
	}
	return text, beyond.Remedy, false
}

// LastError returns the error with which the state ends: one that lasts, or, of a bridge that nobody runs, the one of
// its last commit; nil if there is none.
func (s *Status) LastError() *Failure {
	if s.Position.Once != nil || s.Position.Ended {
		return nil
	}
	for i, e := range s.Errors {
		if s.Leases[e.Lease].Failing {
			return &s.Errors[i]
		}
	}
	if _, _, failed := s.last(); failed && s.Verdict.Code == Nobody {
		return &s.Errors[0]
	}
	return nil
}

// MoveBack is the remedy of a position that the feed does not have.
const MoveBack = "move the bridge back with bridge seek"

// LostHistory is the remedy of history that retention has deleted.
const LostHistory = "set BRIDGE_ON_GAP=continue to continue with what is left (the gap is recorded), or restart from " +
	"scratch with bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC"

// found is how long an instance may take to find the first segment after a seek, or a start. The state does not say
// when it has looked.
const found = 20 * time.Second

// Published is how long after its begin the service may publish the segment of an hour.
const Published = 2 * time.Hour

// Lacking returns what is wrong with a position that the feed does not have.
func (p *Position) Lacking() Problem { return Problem{p.Beyond, p.back} }

// Lacks says that the feed does not have the position. A problem without a cause says nothing.
func (s *Status) Lacks(why Problem) {
	if why.Cause != "" {
		s.Position.Beyond, s.Position.back = why.Cause, why.Remedy
	}
}

// LookBeyond says whether the feed has the position: see Beyond.
func (s *Status) LookBeyond(f *offsets.Frontier, looked bool) {
	p := &s.Position
	if p.Beyond, p.back = Beyond(f, looked, s.Now, s.start()), ""; p.Beyond == "" {
		return
	}
	if p.back = MoveBack; s.Replay {
		topic, name := f.Settings[offsets.FrozenTopic], ""
		if !strings.HasSuffix(s.Name, replayed+topic) {
			name = " --name " + s.Name
		}
		p.back = "end the replay, delete its state with bridge replay --cleanup --topic " + plain.Shell(topic) + name +
			", and repeat it with a --from that the feed has"
	}
}

// replayed is what the default name of a replay has before its topic.
const replayed = ".replay."

// start is what says where delivery begins.
func (s *Status) start() string {
	if s.Replay {
		return "--from"
	}
	return FromStart
}

// FromStart is what says where the delivery of a bridge begins.
const FromStart = "BRIDGE_START"

// Beyond returns what is wrong with a position that the feed does not have: it looks like one where all is delivered.
// Looked says that an instance has found nothing there; a place in the future needs no look. Start is what says where
// delivery begins.
func Beyond(f *offsets.Frontier, looked bool, now time.Time, start string) string {
	if f.Current != (source.Segment{}) || f.Ended {
		return ""
	}
	if seek := f.Seek; seek != nil {
		switch {
		case seek.To != "earliest" && f.Completed.Time().After(now):
			return "bridge seek has moved the bridge into the future, to " + Place(seek.To) +
				": nothing is delivered until then"
		case looked && !f.Moving:
			return NothingFrom(seek)
		}
		return ""
	}
	from, err := envelope.ParseTimestamp(f.Start)
	at := time.Unix(0, from.Wall).UTC()
	switch {
	case err != nil:
	case at.After(now):
		return start + " was in the future, " + at.Format(time.RFC3339) + ": nothing is delivered until then"
	case looked && behindStart(f, now):
		return NothingFromStart(start, at)
	}
	return ""
}

// behindStart reports whether the bridge has found no segment from BRIDGE_START on, though the service would have
// published one.
func behindStart(f *offsets.Frontier, now time.Time) bool {
	start, err := envelope.ParseTimestamp(f.Start)
	return err == nil && Unbegun(f) && f.Settings[offsets.FrozenStart] != "latest" &&
		now.Sub(time.Unix(0, start.Wall)) > Published
}

// Unbegun reports whether the bridge has found no segment since a first start at a time: its place need not be one.
func Unbegun(f *offsets.Frontier) bool {
	start, err := envelope.ParseTimestamp(f.Start)
	return err == nil && f.Current == (source.Segment{}) && f.Completed == history.Before(start) && !f.Scan.Active()
}

// Open returns what is wrong with a current segment that stays open although there are later ones; empty if it is not.
func (s *Status) Open() Problem {
	since := s.Position.OpenSince
	if since == nil {
		return Problem{}
	}
	return Problem{
		Cause: fmt.Sprintf("segment %s is still open, %s after its end: later segments wait until Azure finalizes it",
			s.Position.Current, plain.Span(s.Now.Sub(*since))),
		Remedy: "wait; if it stays open for hours, ask Azure support, with the name of the segment",
	}
}

// NothingFrom says that the feed has nothing where a seek has moved the bridge.
func NothingFrom(seek *offsets.Seek) string {
	return "the feed has no segment from " + Place(seek.To) + " on, where bridge seek has moved the bridge: nothing " +
		"is delivered until it has one"
}

// NothingFromStart says that the feed has nothing from the start on, which is at.
func NothingFromStart(start string, at time.Time) string {
	return "the feed has no segment from " + start + " on, " + at.Format(time.RFC3339) +
		": nothing is delivered until it has one"
}

// halted are the reasons why nothing can be delivered from where the bridge is, whoever runs it: partitions that
// somebody added to its state, a place that the feed does not have, a segment that stays open.
func (s *Status) halted() (all []Problem) {
	for _, p := range []Problem{s.grown(), s.Position.Lacking(), s.Open()} {
		if p.Cause != "" {
			all = append(all, p)
		}
	}
	return all
}

// problems are what a state shows: why nothing can be delivered, the leases whose last error lasts, and those that no
// instance has.
func (s *Status) problems() (all []Problem) {
	all = s.halted()
	free := 0
	for _, l := range s.Leases {
		if l.Failing && l.Error != nil {
			all = append(all, Problem{fmt.Sprintf("lease %d: %s", l.Lease, l.Error.Error), l.Error.Remedy})
		}
		if l.State == Free {
			free++
		}
	}
	if free > 0 && s.Group.State == stable {
		all = append(all, Problem{
			Cause: fmt.Sprintf("no instance has %d of the %s", free, plain.Count(len(s.Leases), "lease")),
		})
	}
	return all
}

// grown returns what is wrong with the number of leases; empty if nothing is.
func (s *Status) grown() Problem {
	if s.made == 0 || s.made == len(s.Leases) {
		return Problem{}
	}
	of := frozen.Settings{Bridge: s.Name}
	text, do := plain.SplitRemedy(of.LeasesChanged(s.made, len(s.Leases)))
	return Problem{text, do}
}

// stable is the state of a group whose members agree: what is free now stays free.
const stable = "Stable"

func inSeconds(s float64) time.Duration { return time.Duration(s * float64(time.Second)) }

// unselected returns a hint if no event has become a record, although a segment is complete that begins at or after the
// start: mostly a filter has a typo. It returns "" otherwise.
func (s *Status) unselected(f *offsets.Frontier) string {
	n := s.Totals
	if n.Read == 0 || cmp.Or(n.Emitted, n.DeadLettered, n.Scanned) > 0 || s.Position.Completed == "" {
		return ""
	}
	start, err := envelope.ParseTimestamp(f.Start)
	if err == nil && f.Completed.Time().Before(time.Unix(0, start.Wall)) {
		return "" // these events are left out for their time
	}
	return "no event has become a record: " + plain.Number(n.Filtered) + " of " + plain.Count(n.Read, "event") +
		" read are left out by the settings; check BRIDGE_CONTAINERS, BRIDGE_PREFIXES, BRIDGE_SUFFIXES, " +
		"BRIDGE_EVENT_TYPES, BRIDGE_BLOB_TYPES and BRIDGE_EVENTS"
}
