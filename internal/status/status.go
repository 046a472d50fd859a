// Package status reports how a bridge is doing from what is in Kafka alone: its offsets topic, and the members of its
// consumer group. It needs neither the feed nor an instance, so it works from anywhere that reaches the brokers, and
// when all instances are gone. Only a copy of the feed in a directory, if there is one, is asked for the position.
//
// Of makes the report of a state, and Reader reads that state from the brokers. An instance makes the same report of
// the state that it holds, and adds what it alone knows (package ops). The names in the report are part of the
// interface.
package status

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Status is the report. What is unknown is null, or absent.
type Status struct {
	Name     string         `json:"name"`
	Now      time.Time      `json:"now"`
	Feed     string         `json:"feed,omitempty"`
	Verdict  Verdict        `json:"verdict"`
	Hint     string         `json:"hint,omitempty"` // what the settings may have wrong, although nothing fails
	Progress *Progress      `json:"progress"`       // of a catch-up or a scan; null if there is none, and while it is unknown
	Started  bool           `json:"started"`        // there was a first start
	Replay   bool           `json:"-"`              // of a replay; from Kafka alone, only its default name shows that
	Position Position       `json:"position"`
	Lag      Lag            `json:"lag"`
	Totals   offsets.Counts `json:"totals"` // since the first start
	Scan     *Scan          `json:"scan,omitempty"`
	Former   []Scan         `json:"former_scans,omitempty"` // before Scan, the newest first
	Topics   []Topic        `json:"topics"`
	Group    Group          `json:"group,omitzero"` // an instance does not know it
	Leases   []Lease        `json:"leases"`
	Errors   []Failure      `json:"errors"` // newest first: the last one of each lease, or the last ones of an instance

	frontier *offsets.Frontier // nil before the first start
	filled   bool              // every topic had a record or a marker
	made     int               // for how many leases the state is made; 0 if it does not say
}

// Position is where the bridge is in the feed.
type Position struct {
	Completed string        `json:"completed,omitempty"` // segments
	Start     *time.Time    `json:"start,omitempty"`     // events before it are left out
	Current   string        `json:"current,omitempty"`
	Resolved  *time.Time    `json:"resolved"`
	Gaps      int           `json:"gaps"`           // how often history was lost
	Event     *time.Time    `json:"event_time"`     // latest that was delivered
	Ended     bool          `json:"ended"`          // END_TIME is reached
	Seek      *offsets.Seek `json:"seek,omitempty"` // no segment is complete since
	// Delivered are the stretches of the feed that are delivered, and Skipped those that seeks have left out.
	Delivered []offsets.Stretch `json:"delivered,omitempty"`
	Skipped   []offsets.Stretch `json:"skipped,omitempty"`
	Once      *time.Time        `json:"once,omitempty"` // run --once had delivered all, and nobody has begun since
	// Beyond is why nothing can be delivered where the bridge is: the feed has nothing there.
	Beyond string `json:"beyond_feed,omitempty"`
	back   string // what to do about it
	sought bool   // the feed is searched for its first segment from the start on
	// unbegun says that the bridge has found no segment since a first start at a time.
	unbegun bool
	// OpenSince is when the current segment ended, if it is open for half an hour longer although there are later ones.
	OpenSince *time.Time `json:"open_since,omitempty"`

	// Only an instance that holds lease 0 knows these.
	Newest   string   `json:"newest,omitempty"`           // segment of the feed, at the last look
	Behind   *float64 `json:"backlog_seconds,omitempty"`  // from the current segment to the newest
	Headroom *float64 `json:"headroom_seconds,omitempty"` // history before the position, which retention may delete
}

// named reports whether Completed is a segment: after a seek, and at a start, it is a place before the first one.
func (p *Position) named() bool { return p.Seek == nil && !p.unbegun && p.Completed != "" }

// Lag is how far delivery is behind the clock. On an idle account it grows although nothing is late.
type Lag struct {
	Event    *float64 `json:"event_seconds"`    // since the latest event that was delivered
	Resolved *float64 `json:"resolved_seconds"` // since the time that is resolved
	// Ahead is what the leases had listed in the current segment and not read, at the last commit of each, without
	// later segments. Null without a current segment, as while small segments are delivered in bundles, and before the
	// first commit in the segment: the state does not say then how much there is.
	Ahead *int64 `json:"ahead_bytes"`

	// Only an instance knows these. Azure is how long the service took to publish the latest event. Bridge is how long
	// published events wait for this instance: 0 if none wait.
	Azure  *float64 `json:"azure_seconds,omitempty"`
	Bridge *float64 `json:"bridge_seconds,omitempty"`
}

// Late returns how late delivery is, as the page has it: both parts.
func (l *Lag) Late() string {
	if l.Bridge == nil {
		return "unknown"
	}
	late := inSeconds(*l.Bridge)
	if l.Azure != nil {
		late += inSeconds(*l.Azure)
	}
	return plain.Span(late)
}

// Topic is where records go.
type Topic struct {
	Name       string `json:"name"`
	Partitions int32  `json:"partitions"`
}

// Group is the consumer group.
type Group struct {
	State   string   `json:"state"`
	Members []Member `json:"members"`
}

// Member is a live instance.
type Member struct {
	Instance string  `json:"instance"`
	Host     string  `json:"host"`
	Leases   []int32 `json:"leases"`
}

// States of a lease, by the consumer group.
const (
	Held     = "held"     // by its owner, which is a member
	Assigned = "assigned" // to a member that has had no work for it yet
	Free     = "free"     // no member has it
	Unused   = "unused"   // no instance has acquired it yet
)

// States of a lease, as an instance reports it. All but Unused and Elsewhere are of leases that the instance holds.
const (
	Elsewhere = "elsewhere"
	Working   = "working"
	Waiting   = "waiting" // for other leases
	Drained   = "drained" // all that the feed has is delivered
	Stuck     = "stuck"   // working for longer than the watchdog allows
)

// Lease is one lease.
type Lease struct {
	Lease     int32             `json:"lease"`
	State     string            `json:"state"`
	Owner     string            `json:"owner,omitempty"`   // instance that acquired it last
	Member    string            `json:"member,omitempty"`  // instance to which the group assigns it
	Frontier  bool              `json:"with_frontier"`     // all up to the completed segment is delivered, no more
	Segment   string            `json:"segment,omitempty"` // current one, unless with_frontier
	Done      bool              `json:"done"`              // all of the segment is delivered
	Shards    map[string]string `json:"shards,omitempty"`  // shard -> chunk/offset
	Events    int64             `json:"events"`            // since the first start of the bridge
	Event     *time.Time        `json:"event_time"`
	Committed *time.Time        `json:"committed"`
	Ahead     int64             `json:"ahead_bytes"`
	Error     *offsets.Failure  `json:"error,omitempty"` // the last one; in an instance's report, since the last commit
	Failing   bool              `json:"failing"`         // the error lasts

	// Only the instance that holds the lease knows these.
	Here    bool    `json:"here,omitempty"`
	Working float64 `json:"working_seconds,omitempty"` // without a commit
	Errors  int     `json:"errors_in_a_row,omitempty"`
}

// Failure is an error of a lease.
type Failure struct {
	Lease int32 `json:"lease"` // -1: of the instance
	offsets.Failure
	Class string `json:"class,omitempty"` // in an instance's report
	Count int    `json:"count,omitempty"` // how often it came, in an instance's report
}

// Of returns the report of a state.
func Of(name string, state *offsets.State, group Group, now time.Time) *Status {
	s := &Status{Name: name, Now: now.UTC(), Group: group, Topics: []Topic{}, Leases: []Lease{}, Errors: []Failure{}}
	for p := range int32(len(state.Cursors)) {
		s.lease(p, state)
	}
	slices.SortFunc(s.Errors, func(a, b Failure) int {
		return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Lease, b.Lease))
	})
	s.Lag.Event = since(now, s.Position.Event)
	f := state.Frontier
	if f == nil {
		if place, err := history.ParseTarget(state.Place); err == nil { // a seek has chosen the first start
			f = new(offsets.Frontier)
			place.Move(f)
			s.Position.Seek = f.Seek
			s.LookBeyond(f, false)
		}
		s.Verdict = s.Judge("", s.problems())
		return s
	}
	s.frontier, s.Started, s.Feed, s.made = f, true, f.Feed, f.Leases
	p := &s.Position
	p.Completed, p.Current = f.Completed.String(), f.Current.String()
	p.Gaps, p.Ended, p.Seek = f.Gaps, f.Over(), f.Seek
	p.Delivered, p.Skipped = f.Delivered(), f.Skipped()
	s.Replay = strings.HasSuffix(name, replayed+f.Settings[offsets.FrozenTopic])
	s.LookBeyond(f, state.Delivered != nil || now.Sub(f.Time) >= found)
	p.sought, p.unbegun = behindStart(f, s.Now), Unbegun(f)
	p.OpenSince = Known(f.OpenSince)
	if state.Delivered != nil {
		p.Once = Known(state.Delivered.Time)
	}
	s.Scan, s.Former = scanOf(state), formerScans(cmp.Or(state.Requested(), f.Scan))
	if ts, err := envelope.ParseTimestamp(f.Start); err == nil {
		p.Start = Known(time.Unix(0, ts.Wall))
	}
	if ts, err := envelope.ParseTimestamp(f.Resolved); err == nil {
		p.Resolved = Known(time.Unix(0, ts.Wall))
	}
	s.Lag.Resolved = since(now, p.Resolved)
	if f.Ended {
		s.Lag.Ahead = new(int64) // there is nothing more to deliver
	}
	for _, topic := range slices.Sorted(maps.Keys(f.Topics)) {
		s.Topics = append(s.Topics, Topic{topic, f.Topics[topic]})
	}
	s.filled = filled(f, s.Totals)
	if s.Progress = s.catchUp(state); s.Progress == nil {
		s.Progress = s.Scan.progress(s.Now)
	}
	s.Verdict, s.Hint = s.Judge("", s.problems()), s.unselected(f)
	return s
}

// filled reports whether every topic of f had a record or a marker. After a seek there may be none yet in a topic that
// was created again for it.
func filled(f *offsets.Frontier, n offsets.Counts) bool {
	marked := f.Settings[offsets.FrozenMarkers] == envelope.MarkersInline.String() && f.Resolved != "" && !f.Owed
	return f.Seek == nil && (marked || len(f.Topics) == 1 && n.Emitted+n.Scanned > 0)
}

func (s *Status) lease(p int32, state *offsets.State) {
	l := Lease{Lease: p, State: Unused, Owner: state.Owners[p]}
	if l.Owner != "" || state.Cursors[p] != nil { // a move takes a lease from its owner, and gives it to nobody
		l.State = Free
	}
	for _, m := range s.Group.Members {
		if slices.Contains(m.Leases, p) {
			l.State, l.Member = Assigned, m.Instance
			if m.Instance == l.Owner {
				l.State = Held
			}
		}
	}
	if c := state.Cursors[p]; c != nil {
		l.Events, l.Event, l.Committed, l.Error = c.Counts.Read, Known(c.Event), Known(c.Time), c.Error
		l.Failing = c.Failing
		if l.Frontier = c.Over(state.Frontier); !l.Frontier {
			l.Segment, l.Done, l.Ahead, l.Shards = c.Segment.String(), c.Done, c.Ahead, map[string]string{}
			for shard, at := range c.Shards {
				l.Shards[shard] = at.String()
			}
		}
		s.Totals.Add(c.Counts)
		if l.Error != nil {
			s.Errors = append(s.Errors, Failure{Lease: p, Failure: *l.Error})
		}
		if f := state.Frontier; f != nil && f.Current != (source.Segment{}) && c.Segment == f.Current {
			if s.Lag.Ahead == nil {
				s.Lag.Ahead = new(int64)
			}
			*s.Lag.Ahead += c.Ahead
		}
		if l.Event != nil && (s.Position.Event == nil || l.Event.After(*s.Position.Event)) {
			s.Position.Event = l.Event
		}
	}
	s.Leases = append(s.Leases, l)
}

func since(now time.Time, t *time.Time) *float64 {
	if t == nil {
		return nil
	}
	seconds := max(0, now.Sub(*t)).Seconds() // clocks differ
	return &seconds
}

// Known returns t in UTC, or nil if it is zero.
func Known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
