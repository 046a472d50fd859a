package change

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"

	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/setup"
	"blobfeed/internal/status"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// Replay delivers the events between two times a second time, into a topic of their own: a bridge with a name, and so a
// state, of its own, that ends at a time. The fields are what the verb's flags say. From and To are empty for a
// clean-up.
type Replay struct {
	Live            *config.Config // settings of the live bridge
	From, To, Topic string
	Name            string // "": the default
}

func (r *Replay) name() string { return cmp.Or(r.Name, setup.ReplayName(r.Live.Name, r.Topic)) }

// Check reports flags that can't be right.
func (r *Replay) Check() error {
	if strings.Contains(r.Topic, "{") {
		return fmt.Errorf("--topic %s: want the name of one topic", r.Topic)
	}
	last, err := history.ParseEnd(r.To)
	if err != nil {
		return fmt.Errorf("--to: %w", err)
	}
	if r.From == "earliest" {
		return nil
	}
	first, err := history.ParseTime(r.From)
	if err != nil {
		return fmt.Errorf("--from: %w. For the oldest event, use earliest", err)
	}
	if first.Compare(last) > 0 {
		return fmt.Errorf("--from %s is later than --to %s", r.From, r.To)
	}
	if time.Unix(0, first.Wall).After(time.Now()) {
		return fmt.Errorf("--from %s is in the future: until then, nothing would be delivered", r.From)
	}
	return nil
}

// Waits says for what the replay will wait before it ends; "" if the feed has it, or if that can't be read here.
func (r *Replay) Waits(ctx context.Context) string {
	last, err := history.ParseEnd(r.To)
	if err == nil && time.Unix(0, last.Wall).After(time.Now()) {
		return fmt.Sprintf("--to %s is in the future: the replay ends when the feed is complete up to then\n", r.To)
	}
	feed, err := setup.OpenSource(r.Live, setup.Observe{})
	if err != nil {
		return ""
	}
	known := time.Unix(0, last.Wall).Add(15 * time.Minute) // as far as an event can be outside its segment of an hour
	for seg, err := range feed.Feed.Segments(ctx, source.SegmentAt(known.Add(-2*time.Hour))) {
		if err != nil {
			return ""
		}
		complete := seg.Time()
		if m, err := feed.Feed.Manifest(ctx, seg); err == nil && m.Finalized {
			complete = m.Begin.Add(m.Interval)
		}
		if !complete.Before(known) {
			return ""
		}
	}
	return fmt.Sprintf("the feed is not complete up to --to %s yet: the replay ends when it is\n", r.To)
}

// beginning says where the feed begins if that is after --from: it has nothing to replay before.
func (r *Replay) beginning(ctx context.Context, c *config.Config) (text string, err error) {
	from, err := history.ParseTime(r.From)
	if err != nil { // earliest
		return "", nil
	}
	feed, err := setup.OpenSource(c, setup.Observe{})
	if err != nil {
		return "", err
	}
	for first, err := range feed.Feed.Segments(ctx, source.Segment{}) {
		if err == nil && first.Time().After(time.Unix(0, from.Wall)) {
			text = fmt.Sprintf("the feed begins with segment %s: it has no earlier event\n", first)
		}
		return text, err
	}
	return "", nil
}

// Prepare returns the settings of the replay, and the id of the schema that it has to write keys with, or 0.
func (r *Replay) Prepare(ctx context.Context) (c *config.Config, keys int, err error) {
	c, err = setup.Examined(r.Live.With(func(c *config.Config) {
		c.Name, c.Start, c.EndTime, c.Topic = r.name(), r.From, r.To, r.Topic
		c.HTTPAddr = "off" // the live bridge may have it on this machine
	}))
	if err != nil {
		return nil, 0, plain.SettingsErrorf("the replay's settings:\n%v", err)
	}
	if err := r.separate(ctx); err != nil {
		return nil, 0, err
	}
	if err := permitted(ctx, c); err != nil {
		return nil, 0, err
	}
	keys, err = r.keys(ctx, c)
	return c, keys, err
}

// permitted returns an error if the brokers do not permit the replay to use topics and a group of its own, which run
// would wait for. Any other error is left to run.
func permitted(ctx context.Context, c *config.Config) error {
	in, done, err := setup.State(c)
	if err != nil {
		return err
	}
	defer done()
	ctx, cancel := context.WithTimeout(ctx, setup.StateTimeout)
	defer cancel()
	_, state := topics.Count(ctx, in.Admin, in.Topic)
	_, records := topics.Count(ctx, in.Admin, c.Topic)
	_, group := in.Group(ctx)
	for _, err := range []error{state, records, group} {
		if errors.Is(err, kerr.TopicAuthorizationFailed) || errors.Is(err, kerr.GroupAuthorizationFailed) {
			return plain.WithRemedy(err, fmt.Sprintf(
				"permit what BRIDGE_NAME=%s BRIDGE_TOPIC=%s bridge config --format acls prints", c.Name, c.Topic))
		}
	}
	return nil
}

// separate rejects what the live bridge writes to.
func (r *Replay) separate(ctx context.Context) error {
	live := r.Live
	if r.name() == live.Name {
		return plain.SettingsErrorf("--name %s is the live bridge's: a replay needs a state of its own; use another "+
			"name", live.Name)
	}
	taken := map[string]bool{
		live.Topic: true, plain.StateTopic(live.Name): true, plain.DeadLetterTopic(live.Name): true,
	}
	s, err := state(ctx, live)
	if err != nil {
		return err
	}
	if s != nil && s.Frontier != nil {
		for topic := range s.Frontier.Topics {
			taken[topic] = true
		}
	}
	if taken[r.Topic] || taken[plain.RecordTopic(r.Topic)] {
		return plain.SettingsErrorf("--topic %s is one of the live bridge's: a replay would write its events there a "+
			"second time; use another topic", r.Topic)
	}
	return nil
}

// state returns the state of the bridge that the settings name, or nil if it has none.
func state(ctx context.Context, c *config.Config) (state *offsets.State, err error) {
	err = setup.InState(ctx, c, func(_ context.Context, _ *status.Reader, s *offsets.State) error {
		state = s
		return nil
	})
	if errors.As(err, new(*status.NeverRanError)) {
		return nil, nil
	}
	return state, err
}

// Report says what a replay with these settings has delivered, or fails if it is not complete. Records is the number of
// those that this run delivered.
func (r *Replay) Report(ctx context.Context, c *config.Config, records int64) (text string, err error) {
	err = setup.InState(ctx, c, func(_ context.Context, in *status.Reader, s *offsets.State) error {
		if !s.Frontier.Over() {
			return errors.New("stopped before the end: repeat the command to continue")
		}
		all := status.Of(c.Name, s, status.Group{}, time.Now()).Totals.Emitted
		flag := ""
		if r.Name != "" {
			flag = " --name " + r.Name
		}
		text = fmt.Sprintf("topic %s has the events from %s to %s: %s came in this run, %s in all\n"+
			"the state of the replay is in topic %s; bridge replay --cleanup --topic %s%s deletes it\n",
			r.Topic, r.From, r.To, plain.Count(records, "record"), plain.Number(all), in.Topic, r.Topic, flag)
		return nil
	})
	if err != nil {
		return "", err
	}
	begins, err := r.beginning(ctx, c)
	return text + begins, err
}

// CleanUp deletes the state of a replay, and returns the name of the topic that had it.
func (r *Replay) CleanUp(ctx context.Context) (topic string, err error) {
	c, name := *r.Live, r.name()
	if name == c.Name {
		return "", plain.SettingsErrorf("--name %s is the live bridge's: see bridge reset", name)
	}
	c.Name = name
	err = setup.InState(ctx, &c, func(ctx context.Context, in *status.Reader, s *offsets.State) error {
		topic = in.Topic
		if f := s.Frontier; f != nil &&
			(f.Settings[offsets.FrozenTopic] != r.Topic || f.Settings[offsets.FrozenEnd] == "") {
			return plain.SettingsErrorf("--name %s is not of a replay to topic %s: bridge reset deletes the progress "+
				"of a bridge", name, r.Topic)
		}
		group, err := in.Group(ctx)
		if err != nil {
			return err
		}
		if len(group.Members) > 0 {
			return fmt.Errorf("replay %s is running: stop it first", name)
		}
		if rs, err := in.Admin.DeleteTopics(ctx, topic); err != nil || rs.Error() != nil {
			return fmt.Errorf("deleting topic %s: %w", topic, errors.Join(err, rs.Error()))
		}
		if group.State != "Dead" {
			if _, err := in.Admin.DeleteGroup(ctx, name); err != nil {
				return fmt.Errorf("deleting group %s: %w", name, err)
			}
		}
		return nil
	})
	if errors.As(err, new(*status.NeverRanError)) {
		err = fmt.Errorf("there is no topic %s: no replay to topic %s has run, or its state is deleted; check "+
			"--topic, --name and BRIDGE_NAME", plain.StateTopic(name), r.Topic)
	}
	return topic, err
}

// keys returns the id of the schema that a replay has to write keys with, or 0 if keys have no schema. An Avro key
// begins with that id, and all bytes of the key choose its partition. The replay's topic has a schema of its own, and
// with the id of that schema keys would land in other partitions than the live ones.
func (r *Replay) keys(ctx context.Context, c *config.Config) (id int, err error) {
	record, topics, _, err := setup.Output(r.Live, "", setup.Observe{})
	if err != nil {
		return 0, plain.SettingsErrorf("%v", err)
	}
	if record.KeyFormat != envelope.KeyAvro {
		return 0, nil
	}
	topic, ok := topics.Constant()
	if !ok {
		return 0, plain.SettingsErrorf("with %[1]s_TOPIC=%[2]s the Avro keys of each topic have a schema id of their "+
			"own, and in one topic they would land in other partitions: set %[1]s_KEY_FORMAT for the replay, "+
			"to json_array for example", config.Prefix, r.Live.Topic)
	}
	s, err := state(ctx, c) // of an interrupted replay; the live bridge may be gone
	if s != nil {
		id = status.KeySchema(s, r.Topic)
	}
	if err != nil || id != 0 {
		return id, err
	}
	if s, err = state(ctx, r.Live); s != nil {
		id = status.KeySchema(s, topic)
	}
	return id, err
}
