package check

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// topic is one that run uses.
type topic struct {
	topics.Topic
	create bool // run creates it if it is missing
	asked  bool // by asking the brokers for it
	had    bool // it had records, so it is not created in place of one that is gone
}

// plan returns the topics that run will use, at a first start or behind a frontier.
func (ck *checker) plan(ctx context.Context) (all []topic) {
	o, f := ck.bridge, ck.frontier
	plan := o.TopicPlan()
	add := func(t topics.Topic, had bool) {
		n := topic{Topic: t, create: plan.By != topics.ByNobody && !had, had: had}
		if n.asked = plan.By == topics.ByBrokers && t.Kind != topics.State; n.asked && n.create {
			n.Partitions = -1 // the brokers' choice
		}
		all = append(all, n)
	}
	written := map[string]int32{} // partitions by topic
	if f != nil {
		maps.Copy(written, f.Topics)
	}
	state := topics.Topic{Kind: topics.State, Name: plain.StateTopic(o.Name), Partitions: o.OffsetsPartitions}
	if f != nil {
		state.Largest = f.Size(nil)
	} else {
		first := offsets.Frontier{Feed: o.FeedID, Settings: o.Frozen}
		state.Largest = first.Size(nil)
	}
	if name, one := o.Topics.Constant(); !one {
		ck.Add("topic", Warning, "BRIDGE_TOPIC="+o.Frozen[offsets.FrozenTopic]+" names many topics; "+
			"those that have no records yet are not checked",
			"permit Write and DescribeConfigs, and Create if run creates them, on what they begin with "+
				"(--resource-pattern-type prefixed)")
		state.Grows = ck.template(f)
		ck.containers(ctx)
	} else if len(written) == 0 {
		written[name] = plan.Partitions
	}
	oldest, largest := ck.oldest(ctx), ck.of.largest()
	for _, name := range slices.Sorted(maps.Keys(written)) {
		t := topics.Topic{Kind: topics.Records, Name: name, Partitions: written[name], Oldest: oldest,
			Largest: largest}
		add(t, f != nil)
		if plan.Beside {
			t.Largest = 0
			t.Kind, t.Name = topics.Markers, plain.MarkerTopic(name)
			add(t, false)
		}
	}
	add(state, false)
	if o.DeadLetter != "" {
		add(topics.Topic{Kind: topics.DeadLetters, Name: o.DeadLetter, Partitions: 1, Largest: largest}, false)
	}
	return all
}

// oldest returns the time of the first event that run will read; zero: unknown, or there is none.
func (ck *checker) oldest(ctx context.Context) (at time.Time) {
	switch f := ck.frontier; {
	case f != nil && f.At() != (source.Segment{}):
		return f.At().Time()
	case f == nil && ck.unread == nil:
		// An error is a finding of the feed.
		at, _, _ = history.New(ck.bridge.Feed, 0).Oldest(ctx, ck.bridge.Start, ck.now)
	}
	return at
}

// template judges how many topics there are, and returns how large the state may become by them.
func (ck *checker) template(f *offsets.Frontier) (grows int) {
	o := ck.bridge
	if f == nil {
		f = &offsets.Frontier{}
	}
	plan := o.TopicPlan()
	status, do := OK, ""
	if near, more := plan.NearLimit(len(f.Topics)); near {
		status, do = Warning, more
	}
	ck.Add("topics", status, fmt.Sprintf("%s in use, of at most %s (BRIDGE_TOPIC_LIMIT)",
		plain.Count(len(f.Topics), "topic"), plain.Number(o.TopicLimit)), do)
	if o.AdoptTopics && !o.Topics.Prefixed() {
		ck.Add("topics", Warning, "a client that may create containers can have records written "+
			"to any topic that these credentials may write to",
			"begin BRIDGE_TOPIC with a literal text, or unset BRIDGE_TOPIC_ADOPT")
	}
	pin := offsets.Pin{Partitions: o.TopicPartitions}
	if ck.of.Record.KeyFormat == envelope.KeyAvro {
		pin.KeySchema = 1_000_000
	}
	pins := map[string]offsets.Pin{}
	for i := len(f.Topics); i < o.TopicLimit; i++ {
		pins[fmt.Sprintf("%0*d", ck.of.LongestTopic, i)] = pin
	}
	return f.Size(pins)
}
