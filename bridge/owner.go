package bridge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/internal/topicname"
	"blobfeed/offsets"
)

// Sole rejects topics that another bridge writes to. Two bridges on one topic break what each promises of it: the
// markers of one speak for the other's records, and with one feed every event comes twice.
func (o *Options) Sole(topics []string, claims []offsets.Claim) error {
	for _, c := range claims {
		for _, own := range []string{topicname.State(c.Name), topicname.DeadLetters(c.Name)} {
			if slices.Contains(topics, own) {
				return &SettingsError{Problem: fmt.Sprintf("topic %s is the state or the dead letters of bridge %s: "+
					"set another BRIDGE_TOPIC", own, c.Name)}
			}
		}
		topic, taken := o.shares(topics, &c)
		if !taken || o.Shared && c.Feed != o.FeedID {
			continue
		}
		why := "To bring several accounts into one topic, set BRIDGE_TOPIC_SHARED=true for each of their bridges " +
			"(docs/operations.md#one-topic-for-several-accounts says what still holds)"
		if c.Feed == o.FeedID {
			why = "Both read the same feed, so every event would come twice"
		}
		return &SettingsError{Problem: fmt.Sprintf("topic %s belongs to bridge %s, which reads feed %s and has its "+
			"state in topic %s.offsets: set another BRIDGE_TOPIC. %s. "+
			"If %[2]s is retired, run bridge reset --yes with BRIDGE_NAME=%[2]s",
			topic, c.Name, c.Feed, c.Name, why)}
	}
	return nil
}

// RecordTopics returns the topics that the bridge of c writes records to, as far as they are known. Before the first
// segment is complete, only the settings name them.
func RecordTopics(c *offsets.Claim) []string {
	template := c.Settings[offsets.FrozenTopic]
	if template == "" || strings.Contains(template, "{") {
		return c.Topics
	}
	return append(slices.Clone(c.Topics), envelope.KafkaName(template))
}

// shares returns a topic that the bridge of c writes to as well.
func (o *Options) shares(topics []string, c *offsets.Claim) (string, bool) {
	theirs := map[string]bool{}
	add := func(topic string) {
		theirs[topic] = true
		if c.Settings[offsets.FrozenMarkers] == envelope.MarkersTopic.String() {
			theirs[topicname.Markers(topic)] = true
		}
	}
	for _, topic := range RecordTopics(c) {
		add(topic)
	}
	for _, topic := range topics {
		if theirs[topic] || o.Markers == envelope.MarkersTopic && theirs[topicname.Markers(topic)] {
			return topic, true
		}
	}
	// The same template for the same feed gives the same topics. Others may never meet: rivals.rejectTaken looks at
	// each topic.
	template := c.Settings[offsets.FrozenTopic]
	return template, strings.Contains(template, "{") && template == o.Frozen[offsets.FrozenTopic] && c.Feed == o.FeedID
}

// claimsAge is how old the claims of other bridges may be for a new topic of a template. To read them for each topic
// would make the first start on an account with thousands of containers take hours.
const claimsAge = time.Minute

// rivals are the claims of the other bridges as they were read last.
type rivals struct {
	opts   *Options    // immutable
	client *kgo.Client // immutable

	// Guarded by turn, which is taken while claims are read: the workers that wait want the same.
	turn   turn
	claims []offsets.Claim
	read   time.Time
	first  bool // there was no frontier yet at the start: see stillSole
}

// readClaims reads the claims of the other bridges. With an error it has those that could be read.
func (r *rivals) readClaims(ctx context.Context) (hidden []error, err error) {
	read := func(own string) func(context.Context) ([]offsets.Claim, []error, error) {
		return func(ctx context.Context) ([]offsets.Claim, []error, error) {
			return offsets.Claims(ctx, kadm.NewClient(r.client), own, r.opts.Client...)
		}
	}
	if r.opts.Claims == nil {
		r.claims, hidden, err = read(r.opts.Name)(ctx)
	} else {
		r.claims, hidden, err = r.opts.Claims.of(ctx, r.opts.Name, read(""))
	}
	if err == nil {
		r.read = time.Now()
	}
	return hidden, err
}

// atStart rejects a start on a topic of another bridge, before anything is created. Unread is for behind.
func (r *rivals) atStart(ctx context.Context) (unread, _ error) {
	if err := r.turn.take(ctx); err != nil {
		return nil, err
	}
	defer r.turn.leave()
	hidden, unread := r.readClaims(ctx)
	for _, err := range hidden {
		r.opts.Log.Warn("claims of another bridge can't be read; its topics are unknown", "error", err)
	}
	return unread, r.opts.Sole(r.opts.constant(), r.claims)
}

// behind rejects the topics of the frontier of an earlier start. Without a frontier nothing of this bridge is in the
// topics, so the start waits until the claims can be read. With one, an earlier start has read them.
func (r *rivals) behind(ctx context.Context, f *offsets.Frontier, unread error) error {
	if err := r.turn.take(ctx); err != nil {
		return err
	}
	defer r.turn.leave()
	if r.first = f == nil; r.first {
		return unread
	}
	if unread != nil {
		r.opts.Log.Warn("claims of other bridges can't be read for now; their topics are unknown", "error", unread)
	}
	return r.opts.Sole(slices.Sorted(maps.Keys(f.Topics)), r.claims)
}

// stillSole reads the claims again after this instance has committed the first frontier, and before the frontier names
// a segment. offsets.Claim shows why: two bridges may start at the same time. If there was a frontier at the start, the
// claims that were read then are enough.
func (r *rivals) stillSole(ctx context.Context, retry retryFunc, f *offsets.Frontier) error {
	if err := r.turn.take(ctx); err != nil {
		return err
	}
	defer r.turn.leave()
	if !r.first {
		return nil
	}
	return retry(ctx, func(ctx context.Context) error {
		if _, err := r.readClaims(ctx); err != nil {
			return err
		}
		if err := r.opts.Sole(append(slices.Sorted(maps.Keys(f.Topics)), r.opts.constant()...), r.claims); err != nil {
			return err
		}
		r.first = false
		return nil
	})
}

// rejectTaken rejects a topic of a template that belongs to another bridge. Two bridges with different templates that
// meet the same topic within claimsAge miss each other here. The next start of either finds the topic in both states.
func (r *rivals) rejectTaken(ctx context.Context, topic string) error {
	if err := r.turn.take(ctx); err != nil {
		return err
	}
	defer r.turn.leave()
	if time.Since(r.read) > claimsAge {
		if _, err := r.readClaims(ctx); err != nil {
			return err
		}
	}
	return r.opts.Sole([]string{topic}, r.claims)
}
