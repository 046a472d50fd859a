package bridge

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/history"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
	"blobfeed/source"
)

// topicAdmin returns what looks after the topics.
func (inst *instance) topicAdmin(cl *kgo.Client) *topics.Admin {
	return &topics.Admin{
		Plan: inst.opts.TopicPlan(), Client: cl, Now: inst.opts.Now, Log: inst.opts.Log,
		Oldest: func(ctx context.Context) (time.Time, bool, error) { return inst.opts.Oldest(ctx, inst.opts.Now()) },
	}
}

// prepareTopics creates the topics if it may, and rejects those that can't hold what is to be written. Once there is a
// frontier, it creates none in place of a topic of records that is gone: its records are.
func (inst *instance) prepareTopics(ctx context.Context, f *offsets.Frontier) error {
	for _, own := range []string{inst.opts.offsetsTopic(), inst.opts.DeadLetter} {
		if err := inst.opts.Topics.Apart(own); err != nil {
			return &SettingsError{Problem: fmt.Sprintf("BRIDGE_TOPIC: %v", err)}
		}
	}
	if f == nil {
		if err := inst.topics.Missing(ctx, inst.opts.wanted()...); err != nil {
			return err
		}
	}
	if inst.opts.DeadLetter != "" {
		if err := inst.topics.OpenDeadLetters(ctx, inst.opts.DeadLetter); err != nil {
			return err
		}
	}
	if f != nil {
		var oldest time.Time
		if at := f.At(); at != (source.Segment{}) {
			oldest = at.Time()
		}
		return asSettings(inst.topics.Fit(ctx, f.Topics, oldest))
	}
	for _, topic := range inst.opts.constant() {
		if _, err := inst.openTopic(ctx, topic); err != nil {
			return err
		}
	}
	return nil
}

// wanted returns the topics of a first start, as far as the settings name them.
func (o *Options) wanted() []topics.Topic {
	all := []topics.Topic{{Kind: topics.State, Name: o.offsetsTopic(), Partitions: o.OffsetsPartitions}}
	for _, name := range o.constant() {
		all = append(all, topics.Topic{Kind: topics.Records, Name: name, Partitions: o.TopicPartitions})
		if o.TopicPlan().Beside {
			markers := plain.MarkerTopic(name)
			all = append(all, topics.Topic{Kind: topics.Markers, Name: markers, Partitions: o.TopicPartitions})
		}
	}
	if o.DeadLetter != "" {
		all = append(all, topics.Topic{Kind: topics.DeadLetters, Name: o.DeadLetter, Partitions: 1})
	}
	return all
}

// openTopic makes sure that a topic of records exists and fits.
func (inst *instance) openTopic(ctx context.Context, topic string) (o opening, err error) {
	if o.partitions, err = inst.topics.Open(ctx, topic); err != nil {
		return o, asSettings(err)
	}
	o.limit, err = inst.topics.MaxMessage(ctx, topic)
	return o, err
}

// asSettings returns a topic that must stop the bridge as an error of the settings.
func asSettings(err error) error {
	var problem *topics.Problem
	if errors.As(err, &problem) && problem.Severity == topics.Unfit {
		return &SettingsError{Problem: problem.Error()}
	}
	return err
}

// Oldest returns the time of the first event that a first start would read.
func (o *Options) Oldest(ctx context.Context, now time.Time) (at time.Time, ok bool, err error) {
	start, after := o.Start.Resolve(now)
	for seg, err := range o.Feed.Segments(ctx, after) {
		if err != nil {
			return time.Time{}, false, err
		}
		ts, err := history.ParseStored(start)
		return time.Unix(0, max(ts.Wall, seg.Time().UnixNano())), err == nil, err
	}
	return time.Time{}, false, nil
}

// messageLimit returns how large a batch all topics take that are written to: the next producer must not be made for
// larger records than they take.
func (inst *instance) messageLimit(ctx context.Context) (int32, error) {
	return inst.topics.MaxMessage(ctx, inst.written()...)
}

// written returns the topics that are written to, but for that of the state.
func (inst *instance) written() []string {
	names := inst.opts.constant()
	if inst.opts.DeadLetter != "" {
		names = append(names, inst.opts.DeadLetter)
	}
	for topic := range inst.opened.Range {
		names = append(names, topic.(string))
	}
	if s, _, err := inst.view.Get(); err == nil && s.Frontier != nil {
		names = slices.AppendSeq(names, maps.Keys(s.Frontier.Topics))
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// stateLimit returns how large a document of the state may be. Each new topic asks.
func (inst *instance) stateLimit(ctx context.Context) (int32, error) {
	return inst.limits.get(ctx, inst.opts.offsetsTopic())
}
