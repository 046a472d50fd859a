package status

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// NeverRanError says that there is no state of this name. Group: although instances have been there.
type NeverRanError struct {
	Topic string
	Group bool
}

func (e *NeverRanError) Error() string {
	if e.Group {
		return stateGone(e.Topic) + ": " + continueAt("<time>")
	}
	return fmt.Sprintf("there is no topic %s: no bridge of this name has run on these brokers; "+
		"check BRIDGE_NAME and BRIDGE_KAFKA_BROKERS", e.Topic)
}

// ErrSilent is the cause of a context that ended while brokers were asked.
var ErrSilent = errors.New("the brokers did not answer in time")

// patience is how long brokers may take to answer at all. A large state may take longer to read.
var patience = 10 * time.Second // tests have a shorter one

// Reader reads the state and the group of one bridge from the brokers.
type Reader struct {
	Name    string
	Topic   string   // of its state
	Brokers []string // for an error; may be empty
	Beside  []string // other bridges, which an instance may run together with this one
	Admin   *kadm.Client
	Client  []kgo.Opt

	// Copy is the feed if it is a copy in a directory of this machine; nil: it is elsewhere.
	Copy   *source.Feed
	CopyID string

	ids map[string]kadm.TopicID // of the topics of records, when Gone looked first
}

// Status returns the report of this moment.
func (r *Reader) Status(ctx context.Context) (*Status, error) {
	state, err := r.State(ctx)
	if err != nil {
		return nil, err
	}
	return r.Of(ctx, state)
}

// Of returns the report of a state of this moment.
func (r *Reader) Of(ctx context.Context, state *offsets.State) (*Status, error) {
	group, err := r.Group(ctx)
	if err != nil {
		return nil, err
	}
	s := Of(r.Name, state, group, time.Now())
	if older := r.Older(ctx, s); older.Cause != "" {
		s.Lacks(older)
		s.Verdict = s.Judge("", s.problems())
	} else if next := r.undelivered(ctx, s); next != (source.Segment{}) {
		s.Position.Once = nil
		s.Verdict = s.Judge("", s.problems())
		s.Verdict.Text += ", and the feed has later segments, from " + next.String() + " on"
	}
	gone := r.Gone(ctx, s)
	switch nobody := s.Verdict.Code == Nobody; {
	case gone.Cause != "" && nobody: // the next start
		s.Verdict.Text, s.Verdict.Remedy = s.Verdict.Text+"; "+gone.Cause, gone.Remedy
		return s, nil
	case gone.Cause != "": // also after run --once
		s.Verdict = degraded(append([]Problem{gone}, s.problems()...))
		return s, nil
	case nobody:
		if works := r.worker(ctx); works != "" {
			s.Verdict = s.AwayFrom(works)
		}
		return s, nil
	case len(group.Members) == 0:
		return s, nil
	}
	names := []string{r.Topic}
	for _, t := range s.Topics {
		names = append(names, t.Name)
	}
	if err := topics.Unwritable(ctx, r.Admin, false, names...); err != nil { // what commits nothing cannot report it
		text, do := plain.SplitRemedy(err)
		s.Verdict = s.Judge("", append([]Problem{{text, do}}, s.problems()...))
	}
	return s, nil
}

// Older returns what is wrong with a copy of the feed that lacks the segment where the bridge is, although it has
// earlier ones: retention deletes the oldest segments first.
func (r *Reader) Older(ctx context.Context, s *Status) Problem {
	h := r.copyOf(s)
	if h == nil {
		return Problem{}
	}
	if err := h.LostAt(ctx, s.frontier); !errors.Is(err, source.ErrNotFound) {
		return Problem{}
	}
	if _, any, err := h.Next(ctx, source.Segment{}); !any || err != nil {
		return Problem{} // the copy is incomplete, which a read of it reports
	}
	return OlderCopy(s.frontier)
}

// OlderCopy returns what is wrong with a copy of the feed that lacks the segment where a frontier is.
func OlderCopy(f *offsets.Frontier) Problem {
	return Problem{"the feed has no segment " + f.At().String() + ", where the bridge is: this may be an older copy",
		CopyAgain}
}

// CopyAgain is the remedy of a copy that lacks something.
const CopyAgain = "if the account has more, copy the container $blobchangefeed again: log/ and idx/ first, then meta/"

func stateGone(topic string) string {
	return "topic " + topic + " does not exist any more: the bridge's progress is gone, and nothing can be committed"
}

// continueAt says how to continue without a state. A start is refused, because it would repeat all records.
func continueAt(from string) string {
	return "stop all instances, then run bridge seek --to " + from + " --yes: only later events are repeated"
}

// mostLooked bounds a look at the topics of a template.
const mostLooked = 100

// undelivered returns the first segment that a copy of the feed has got since run --once delivered everything; zero if
// there is none.
func (r *Reader) undelivered(ctx context.Context, s *Status) (next source.Segment) {
	if h := r.copyOf(s); h != nil && s.Position.Once != nil && !s.frontier.Ended {
		next, _, _ = h.Next(ctx, s.frontier.At()) // an instance reports an error
	}
	return next
}

// copyOf returns the feed that a bridge delivers, if it is a copy in a directory of this machine; else nil.
func (r *Reader) copyOf(s *Status) *history.History {
	if r.Copy == nil || s.frontier == nil || s.frontier.Feed != r.CopyID {
		return nil
	}
	return history.New(r.Copy, 0)
}

// Gone returns which topic of the bridge does not exist any more, or which topic of records is another one: with fewer
// partitions, without a record although there were some, or with another id than at the first call. If the brokers do
// not say, nothing is wrong with it. It looks at the first topics only.
func (r *Reader) Gone(ctx context.Context, s *Status) Problem {
	all := s.Topics[:min(len(s.Topics), mostLooked)]
	names := make([]string, len(all))
	for i, t := range all {
		names[i] = t.Name
	}
	listed, err := r.Admin.ListTopics(ctx, append(names, r.Topic)...)
	if err != nil {
		return Problem{}
	}
	if errors.Is(listed[r.Topic].Err, kerr.UnknownTopicOrPartition) {
		from := "<time>"
		if at := s.Position.Resolved; at != nil {
			from = at.Format(time.RFC3339)
		}
		return Problem{Cause: stateGone(r.Topic), Remedy: continueAt(from)}
	}
	first := r.ids == nil
	for _, t := range all {
		switch now := listed[t.Name]; {
		case errors.Is(now.Err, kerr.UnknownTopicOrPartition):
			gone := topics.MissingError{Topic: t.Name, Had: t.Partitions}
			return Problem{gone.Cause(), gone.Remedy()}
		case now.Err == nil && len(now.Partitions) < int(t.Partitions): // Kafka removes none
			return Problem{
				Cause: fmt.Sprintf("topic %s has %s and had %d: it was deleted and created again, and its records are "+
					"gone", t.Name, plain.Count(len(now.Partitions), "partition"), t.Partitions),
				Remedy: "restart from scratch with bridge reset, or give it " + plain.Count(t.Partitions, "partition") +
					" again and deliver what is left with bridge seek --to earliest",
			}
		case now.Err != nil || first:
		case r.ids[t.Name] != now.ID && r.ids[t.Name] != kadm.TopicID{}:
			return Problem{Cause: "topic " + t.Name + " was deleted and created again, and its records are gone",
				Remedy: afresh}
		}
	}
	if first {
		return r.emptied(ctx, s, listed, names)
	}
	return Problem{}
}

// emptied takes note of the ids, and returns which topic is empty although it had records.
func (r *Reader) emptied(ctx context.Context, s *Status, listed kadm.TopicDetails, names []string) Problem {
	r.ids = map[string]kadm.TopicID{}
	for name, topic := range listed {
		r.ids[name] = topic.ID
	}
	if !s.filled {
		return Problem{}
	}
	ends, err := topics.Offsets(ctx, r.Admin.ListEndOffsets, names...)
	if err != nil {
		return Problem{}
	}
	for _, name := range names {
		// Neither retention nor a deletion of records moves an end back.
		empty := len(ends[name]) > 0
		for _, end := range ends[name] {
			empty = empty && end.Offset == 0
		}
		if empty {
			r.ids[name] = kadm.TopicID{0xff} // that of the topic that is gone is unknown, and no later look may miss it
			return Problem{Cause: "topic " + name + " is empty, although records were delivered to it: it was " +
				"deleted and created again", Remedy: afresh}
		}
	}
	return Problem{}
}

// afresh is the remedy of records that are gone.
const afresh = "restart from scratch with bridge reset, or deliver what is left with bridge seek --to earliest"

// State reads the committed state from the topic.
func (r *Reader) State(ctx context.Context) (*offsets.State, error) {
	ends, err := r.firstEnds(ctx)
	if errors.Is(err, kerr.UnknownTopicOrPartition) {
		group, err := r.Group(ctx)
		return nil, &NeverRanError{r.Topic, err == nil && group.State != "" && group.State != "Dead"}
	}
	if err != nil {
		return nil, fmt.Errorf("reading the end of %s: %w", r.Topic, err)
	}
	at := make([]int64, len(ends[r.Topic]))
	for p, end := range ends[r.Topic] {
		at[p] = end.Offset
	}
	return offsets.ReadTo(ctx, r.Topic, at, r.Client...)
}

// firstEnds returns the offset up to which each partition can be read, or an error if nobody answers. A report right
// after a run must include its last commit. It does not wait for the client, which may hang in a connection beyond the
// end of a context.
func (r *Reader) firstEnds(ctx context.Context) (kadm.ListedOffsets, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	type answer struct {
		ends kadm.ListedOffsets
		err  error
	}
	answered := make(chan answer, 1)
	go func() {
		ends, err := topics.DecidedEnds(ctx, r.Admin, r.Topic)
		answered <- answer{ends, err}
	}()
	select {
	case a := <-answered:
		return a.ends, a.err
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-time.After(patience):
	}
	if len(r.Brokers) == 0 {
		return nil, ErrSilent
	}
	return nil, fmt.Errorf("%w (%s): %s", ErrSilent, patience, strings.Join(r.Brokers, ", "))
}

// Group reads the live members.
func (r *Reader) Group(ctx context.Context) (Group, error) {
	groups, err := r.Admin.DescribeGroups(ctx, r.Name)
	if err == nil {
		err = groups.Error()
	}
	if errors.Is(err, kerr.GroupIDNotFound) {
		return Group{State: "Dead", Members: []Member{}}, nil
	}
	if err != nil {
		return Group{}, fmt.Errorf("reading the members of group %s: %w", r.Name, err)
	}
	g := groups[r.Name]
	group := Group{State: g.State, Members: []Member{}}
	for _, m := range g.Members {
		member := Member{
			Instance: strings.TrimPrefix(m.ClientID, r.Name+"-"), Host: strings.TrimPrefix(m.ClientHost, "/"),
			Leases: []int32{},
		}
		if assigned, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range assigned.Topics {
				if t.Topic == r.Topic {
					member.Leases = append(member.Leases, t.Partitions...)
				}
			}
		}
		slices.Sort(member.Leases)
		group.Members = append(group.Members, member)
	}
	return group, nil
}

// worker returns an instance that runs a bridge beside this one; "" if there is none, or nobody says. It asks about the
// first ones only.
func (r *Reader) worker(ctx context.Context) string {
	if len(r.Beside) == 0 {
		return ""
	}
	groups, err := r.Admin.DescribeGroups(ctx, r.Beside[:min(len(r.Beside), mostLooked)]...)
	if err != nil {
		return ""
	}
	for _, g := range groups.Sorted() {
		if len(g.Members) > 0 {
			return strings.TrimPrefix(g.Members[0].ClientID, g.Group+"-")
		}
	}
	return ""
}

// Covers reports whether everything before next in a shard of a segment is committed.
func Covers(s *offsets.State, seg source.Segment, shard int, next source.ShardPosition) bool {
	if s == nil || s.Frontier == nil || len(s.Cursors) == 0 {
		return false
	}
	if seg.Compare(s.Frontier.Completed) <= 0 {
		return true
	}
	c := s.Cursors[shard%len(s.Cursors)]
	if c == nil {
		return false
	}
	at := c.At(seg, shard)
	return c.Finished(seg) || next.Chunk < at.Chunk || next.Chunk == at.Chunk && next.Offset <= at.Offset
}

// KeySchema returns the id of the schema that the Avro keys of a topic are written with, or 0 if there are none.
func KeySchema(s *offsets.State, topic string) (id int) {
	for _, c := range s.Cursors { // they know a topic before the frontier does
		if c != nil && c.Pins[topic].KeySchema != 0 {
			id = c.Pins[topic].KeySchema
		}
	}
	if f := s.Frontier; f != nil && f.KeySchemas[topic] != 0 {
		id = f.KeySchemas[topic]
	}
	return id
}
