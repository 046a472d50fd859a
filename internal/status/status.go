package status

import (
	"cmp"
	"maps"
	"slices"
	"time"

	"blobfeed/envelope"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Status is the report. What is not known is null, or not there.
type Status struct {
	Name     string         `json:"name"`
	Now      time.Time      `json:"now"`
	Feed     string         `json:"feed,omitempty"`
	Started  bool           `json:"started"` // there was a first start
	Position Position       `json:"position"`
	Lag      Lag            `json:"lag"`
	Totals   offsets.Counts `json:"totals"` // since the first start
	Topics   []Topic        `json:"topics"`
	Group    Group          `json:"group"`
	Leases   []Lease        `json:"leases"`
	Errors   []Failure      `json:"errors"` // the last one of each lease, newest first
}

// Position is where the bridge is in the feed.
type Position struct {
	Completed string        `json:"completed,omitempty"` // segments
	Current   string        `json:"current,omitempty"`
	Resolved  *time.Time    `json:"resolved"`
	Gaps      int           `json:"gaps"`           // how often history was lost
	Event     *time.Time    `json:"event_time"`     // latest that was delivered
	Ended     bool          `json:"ended"`          // END_TIME is reached
	Seek      *offsets.Seek `json:"seek,omitempty"` // no segment is complete since
}

// Lag is how far behind the clock delivery is. An idle account's grows, and nothing is late.
type Lag struct {
	Event    *float64 `json:"event_seconds"`    // since the latest event that was delivered
	Resolved *float64 `json:"resolved_seconds"` // since the time that is resolved
	// Ahead is what the leases had listed in the current segment and not read, at the last commit of each. Later segments are
	// not in it. Null without a current segment, as while small segments are delivered in bundles, and before the first
	// commit in it: then nothing in the state says how much there is.
	Ahead *int64 `json:"ahead_bytes"`
}

// Topic is where records go.
type Topic struct {
	Name       string `json:"name"`
	Partitions int32  `json:"partitions"`
}

// Group is the consumer group: who lives.
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

// States of a lease.
const (
	Held     = "held"     // by its owner, which is a member
	Assigned = "assigned" // to a member that has had no work for it yet
	Free     = "free"     // no member has it
	Unused   = "unused"   // nor ever had
)

// Lease is one lease.
type Lease struct {
	Lease     int32             `json:"lease"`
	State     string            `json:"state"`
	Owner     string            `json:"owner,omitempty"`   // who acquired it last
	Member    string            `json:"member,omitempty"`  // whom the group gives it to
	Frontier  bool              `json:"with_frontier"`     // all up to the completed segment is delivered, and nothing of a later one
	Segment   string            `json:"segment,omitempty"` // else the one that it is in
	Done      bool              `json:"done"`              // with it
	Shards    map[string]string `json:"shards,omitempty"`  // shard -> chunk/offset
	Events    int64             `json:"events"`            // since the first start of the bridge
	Event     *time.Time        `json:"event_time"`
	Committed *time.Time        `json:"committed"`
	Ahead     int64             `json:"ahead_bytes"`
	Error     *offsets.Failure  `json:"error,omitempty"`
}

// Failure is an error of a lease.
type Failure struct {
	Lease int32 `json:"lease"`
	offsets.Failure
}

// Of returns the report of a state.
func Of(name string, state *offsets.State, group Group, now time.Time) *Status {
	s := &Status{Name: name, Now: now.UTC(), Group: group, Topics: []Topic{}, Leases: []Lease{}, Errors: []Failure{}}
	for p := range int32(len(state.Cursors)) {
		s.lease(p, state)
	}
	slices.SortFunc(s.Errors, func(a, b Failure) int { return cmp.Or(b.Time.Compare(a.Time), cmp.Compare(a.Lease, b.Lease)) })
	s.Lag.Event = since(now, s.Position.Event)
	f := state.Frontier
	if f == nil {
		return s
	}
	s.Started, s.Feed = true, f.Feed
	p := &s.Position
	p.Completed, p.Current, p.Gaps, p.Ended, p.Seek = f.Completed.String(), f.Current.String(), f.Gaps, f.Ended, f.Seek
	if ts, err := envelope.ParseTimestamp(f.Resolved); err == nil {
		p.Resolved = known(time.Unix(0, ts.Wall))
	}
	s.Lag.Resolved = since(now, p.Resolved)
	if f.Ended {
		s.Lag.Ahead = new(int64) // there is nothing more to deliver
	}
	for _, topic := range slices.Sorted(maps.Keys(f.Topics)) {
		s.Topics = append(s.Topics, Topic{topic, f.Topics[topic]})
	}
	return s
}

func (s *Status) lease(p int32, state *offsets.State) {
	l := Lease{Lease: p, State: Unused, Owner: state.Owners[p]}
	if l.Owner != "" {
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
		l.Events, l.Event, l.Committed, l.Error = c.Counts.Read, known(c.Event), known(c.Time), c.Error
		if l.Frontier = c.Over(state.Frontier); !l.Frontier {
			l.Segment, l.Done, l.Ahead, l.Shards = c.Segment.String(), c.Done, c.Ahead, map[string]string{}
			for shard, at := range c.Shards {
				l.Shards[shard] = at.String()
			}
		}
		s.Totals.Add(c.Counts)
		if l.Error != nil {
			s.Errors = append(s.Errors, Failure{p, *l.Error})
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
	seconds := now.Sub(*t).Seconds()
	return &seconds
}

func known(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	t = t.UTC()
	return &t
}
