package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blobfeed/bridge"
	"blobfeed/internal/catalog"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/status"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// stateTimeout bounds reading the state, which may take some seconds.
const stateTimeout = 30 * time.Second

// readState reads the frontier of an earlier start, if there was one. State reports an error, unless a failure explains
// it.
func (ck *checker) readState(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, stateTimeout, status.ErrSilent)
	defer cancel()
	name := ck.bridge.Name
	r := status.Reader{Name: name, Topic: plain.StateTopic(name), Brokers: ck.client.Brokers, Admin: ck.admin(),
		Client: ck.opts}
	s, err := r.State(ctx)
	var never *status.NeverRanError
	if errors.As(err, &never) {
		return
	}
	if ck.unread = err; err == nil {
		ck.frontier, ck.stored = s.Frontier, s
	}
}

// state compares the settings with those of the records that are there, and looks for another bridge's topics: run
// refuses both.
func (ck *checker) state(ctx context.Context) {
	f, err := ck.frontier, ck.unread
	if err == nil && f != nil {
		if err = ck.bridge.Stored().Fit(ck.stored); err == nil {
			err = ck.bridge.Stored().FitLeases(f, len(ck.stored.Cursors))
		}
	}
	switch {
	case err == nil && f == nil:
		verdict, begins := OK, "run starts at "+ck.start(ctx)
		if end, oldest := ck.bridge.Feed.End.Wall, ck.oldest(ctx); end > 0 && end < oldest.UnixNano() {
			verdict, begins = Warning, begins+" and ends at "+status.Place(ck.bridge.Records.Frozen[offsets.FrozenEnd])+
				", before the first segment, "+oldest.UTC().Format(time.RFC3339)+": it delivers nothing"
		}
		scan := ck.bridge.Feed.InitialScan
		if ck.place() == "" && (scan == bridge.ScanYes || scan == bridge.ScanOnly) {
			begins = "run begins with a scan of the account"
		}
		ck.Add("state", verdict, "there is no progress yet: "+begins, "")
	case err != nil:
		ck.Add("state", Failed, err.Error(), "")
	default:
		ck.Add("state", OK, "there is progress, with these settings", "")
		ck.history(ctx)
		ck.emptied(ctx)
		if ck.Count(Failed) == 0 { // a failure has stopped the last run, too
			ck.lastError(ctx)
		}
	}
	ck.owner(ctx)
}

// lastError warns of an error that has stopped the last run, or lasts: the next run may fail at the same place.
func (ck *checker) lastError(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	r := status.Reader{Name: ck.bridge.Name, Topic: plain.StateTopic(ck.bridge.Name), Admin: ck.admin()}
	group, err := r.Group(ctx)
	if err != nil {
		return // the permission has a finding of its own
	}
	what := "the last run failed"
	if len(group.Members) > 0 {
		what = "the running bridge fails"
	}
	if e := status.Of(r.Name, ck.stored, group, ck.now).LastError(); e != nil {
		why := status.Problem{Cause: e.Error, Remedy: e.Remedy}.Line()
		ck.Add("state", Warning, fmt.Sprintf("%s at lease %d: %s", what, e.Lease, why.Cause), why.Remedy)
	}
}

// place returns where a seek wants the first start; "" if there was none.
func (ck *checker) place() string {
	if ck.stored == nil || ck.frontier != nil {
		return ""
	}
	return ck.stored.Place
}

// start describes where a first start begins, and warns if it would deliver nothing there.
func (ck *checker) start(ctx context.Context) string {
	start := cmp.Or(ck.bridge.Records.Frozen[offsets.FrozenStart], "earliest")
	if place := ck.place(); place != "" {
		return ck.sought(ctx, place)
	}
	ts, err := history.ParseTime(start)
	at := time.Unix(0, ts.Wall).UTC()
	switch {
	case err != nil: // earliest or latest
	case at.After(ck.now):
		ck.Add("start", Warning, "BRIDGE_START is in the future, "+at.Format(time.RFC3339)+
			": nothing is delivered until then", earlier)
	default:
		h := history.New(ck.bridge.Feed.Source, ck.bridge.Pace.PollInterval)
		// An error is a finding of the feed.
		first, more, err := h.Next(ctx, history.Before(ts))
		if err == nil && !more && ck.now.Sub(at) > status.Published {
			ck.Add("start", Warning, status.NothingFromStart(status.FromStart, at), earlier)
		}
		if err == nil && more && first.Time().After(at) {
			return fmt.Sprintf("%s (the first segment from then on is %s)", status.Place(start), first)
		}
	}
	return status.Place(start)
}

// sought is start behind a seek.
func (ck *checker) sought(ctx context.Context, place string) string {
	text := status.Sought(place)
	target, err := history.ParseTarget(place)
	if err != nil {
		return text // run reports it
	}
	f := offsets.Frontier{Seek: new(offsets.Seek)}
	target.Move(&f)
	_, more, err := history.New(ck.bridge.Feed.Source, ck.bridge.Pace.PollInterval).Next(ctx, f.Completed)
	// An error, or an empty feed, is a finding of the feed.
	why := status.Beyond(&f, err == nil && !more && place != "earliest", ck.now, status.FromStart)
	if why != "" {
		ck.Add("start", Warning, why, status.MoveBack)
	}
	return text
}

// earlier is the remedy of a start that the feed does not have.
const earlier = "set BRIDGE_START to an earlier time, or to earliest"

// history looks whether the feed still has what is to be read next.
func (ck *checker) history(ctx context.Context) {
	var gap *history.GapError
	h := history.New(ck.bridge.Feed.Source, ck.bridge.Pace.PollInterval)
	switch err := h.LostAt(ctx, ck.frontier); {
	case errors.As(err, &gap) && ck.bridge.Feed.SkipGaps:
		ck.Add("history", Warning, fmt.Sprintf("it is lost up to segment %s, where run continues (BRIDGE_ON_GAP)",
			gap.Oldest), "")
	case errors.As(err, &gap):
		ck.Add("history", Failed, err.Error(), status.LostHistory)
	case errors.Is(err, source.ErrNotFound) && ck.of.Dir != "": // retention begins with the oldest segment
		older := status.OlderCopy(ck.frontier)
		ck.Add("history", Failed, older.Cause, older.Remedy)
	case !ck.unreadable("history", err):
		beyond, err := ck.beyond(ctx, h)
		switch {
		case beyond != "":
			ck.Add("history", Warning, beyond, status.MoveBack)
		case !ck.unreadable("history", err):
			ck.Add("history", OK, "the feed has what is to be read next", "")
		}
	}
}

// beyond returns why nothing can be delivered where the bridge is; "" if the feed has something there, or had.
func (ck *checker) beyond(ctx context.Context, h *history.History) (string, error) {
	why := status.Of(ck.bridge.Name, ck.stored, status.Group{}, ck.now).Position.Beyond
	f := ck.frontier
	if why != "" || f.Seek == nil || f.Current != (source.Segment{}) || f.Ended {
		return why, nil
	}
	_, more, err := h.Next(ctx, f.At())
	if err != nil || more {
		return "", err
	}
	return status.NothingFrom(f.Seek), nil
}

// overdue warns of a segment that stays open although there are later ones, as the state has it. A bridge that has
// stopped does not know that Azure has finalized the segment since.
func (ck *checker) overdue(ctx context.Context) {
	if ck.frontier == nil {
		return
	}
	open := status.Of(ck.bridge.Name, ck.stored, status.Group{}, ck.now).Open()
	if open.Cause == "" {
		return
	}
	if m, err := ck.bridge.Feed.Source.Manifest(ctx, ck.frontier.Current); err == nil && !m.Finalized {
		ck.Add("open", Warning, open.Cause, open.Remedy)
	}
}

// emptied looks whether a topic was deleted and created again: run continues, and its records are gone.
func (ck *checker) emptied(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, stateTimeout)
	defer cancel()
	r := status.Reader{Topic: plain.StateTopic(ck.bridge.Name), Admin: ck.admin()}
	if gone := r.Gone(ctx, status.Of(ck.bridge.Name, ck.stored, status.Group{}, ck.now)); gone.Cause != "" {
		ck.Add("records", Warning, gone.Cause, gone.Remedy)
	}
}

// owner looks for another bridge that writes to the same topics: run refuses to be the second.
func (ck *checker) owner(ctx context.Context) {
	ctx, cancel := context.WithTimeoutCause(ctx, stateTimeout, status.ErrSilent)
	defer cancel()
	claims, hidden, err := offsets.Claims(ctx, ck.admin(), ck.bridge.Name, ck.opts...)
	if err != nil {
		hidden = append(hidden, err)
	}
	for _, err := range hidden {
		ck.Add("owner", Warning, err.Error(),
			"permit Describe and Read on the state of the other bridge, so that run notices when both write to one "+
				"topic")
	}
	var names []string
	if ck.frontier != nil {
		names = slices.Sorted(maps.Keys(ck.frontier.Topics))
	}
	if topic, ok := ck.bridge.Topics.Names.Constant(); ok && len(names) == 0 {
		names = []string{topic}
	} else if !ok && ck.frontier == nil { // of a directory, only the events name the account
		for ev := range ck.of.emitted() {
			if topic, err := ck.bridge.Topics.Names.Of(ev); err == nil && !slices.Contains(names, topic) {
				names = append(names, topic)
			}
		}
	}
	of := ck.bridge.Catalog()
	if err := of.Sole(names, claims); err != nil {
		text, do := plain.SplitRemedy(err)
		ck.Add("owner", Failed, text, do)
		return
	}
	ck.repeats(ctx, claims)
	detail := "no other bridge writes to " + strings.Join(names, ", ")
	switch {
	case ck.bridge.Topics.Shared:
		detail = "bridges of other accounts may write to the same topics (BRIDGE_TOPIC_SHARED)"
	case len(names) != 1:
		detail = "no other bridge writes to the topics of this one"
	}
	ck.Add("owner", OK, detail, "")
}

// repeats looks for records that no bridge claims although this one has no progress, which a first start rejects. After
// a reset or a seek it does not.
func (ck *checker) repeats(ctx context.Context, claims []offsets.Claim) {
	topic, constant := ck.bridge.Topics.Names.Constant()
	if !constant || ck.unread != nil || ck.stored != nil && ck.stored.Epoch > 0 || ck.frontier != nil {
		return
	}
	of := ck.bridge.Catalog()
	theirs := func(c offsets.Claim) bool { return slices.Contains(catalog.RecordTopics(&c), topic) }
	if slices.ContainsFunc(claims, theirs) { // with TOPIC_SHARED
		return
	}
	admin := &topics.Admin{Client: ck.cl}
	if used, err := admin.Used(ctx, topic, ck.opts); err == nil && used {
		text, do := plain.SplitRemedy(of.Repeats(topic))
		ck.Add("records", Failed, text, do)
	}
}
