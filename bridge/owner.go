package bridge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"blobfeed/envelope"
	"blobfeed/internal/topicname"
	"blobfeed/offsets"
)

// claimsAge is how long the claims of other bridges are good for a new topic of a template. To read them for each topic
// would make the first start on an account with thousands of containers take hours.
const claimsAge = time.Minute

// rivals are the claims of the other bridges as they were read last.
type rivals struct {
	turn   turn // taken while they are read: the workers that wait want the same
	claims []offsets.Claim
	read   time.Time
	first  bool // there was no frontier yet at the start: see stillSole
}

// Sole refuses topics that another bridge writes to. Two bridges on one topic break what each promises of it: the
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
		return &SettingsError{Problem: fmt.Sprintf("topic %s belongs to bridge %s, which reads feed %s and has its state in topic "+
			"%s.offsets: set another BRIDGE_TOPIC. %s. If %[2]s is retired, run bridge reset --yes with BRIDGE_NAME=%[2]s",
			topic, c.Name, c.Feed, c.Name, why)}
	}
	return nil
}

// shares returns a topic that the bridge of c writes to as well.
func (o *Options) shares(topics []string, c *offsets.Claim) (string, bool) {
	theirs := map[string]bool{}
	add := func(topic string) {
		theirs[topic] = true
		if c.Settings["BRIDGE_RESOLVED_TO"] == envelope.MarkersTopic.String() {
			theirs[topicname.Markers(topic)] = true
		}
	}
	for _, topic := range c.Topics {
		add(topic)
	}
	template := c.Settings["BRIDGE_TOPIC"]
	if template != "" && !strings.Contains(template, "{") {
		add(envelope.KafkaName(template)) // it had no record yet
	}
	for _, topic := range topics {
		if theirs[topic] || o.Markers == envelope.MarkersTopic && theirs[topicname.Markers(topic)] {
			return topic, true
		}
	}
	// The same template for the same feed gives the same topics. Others may never meet: newTopic looks at each topic.
	return template, strings.Contains(template, "{") && template == o.Frozen["BRIDGE_TOPIC"] && c.Feed == o.FeedID
}

// readClaims reads the claims of the other bridges. With an error it has those that could be read.
func (b *Bridge) readClaims(ctx context.Context) (hidden []error, err error) {
	claims, hidden, err := offsets.Claims(ctx, b.admin, b.Name, b.Client...)
	b.rivals.claims = claims
	if err == nil {
		b.rivals.read = time.Now()
	}
	return hidden, err
}

// soleAtStart refuses a start on a topic of another bridge, before anything is created. Unread is for soleBehind.
func (b *Bridge) soleAtStart(ctx context.Context) (unread, _ error) {
	if err := b.rivals.turn.take(ctx); err != nil {
		return nil, err
	}
	defer b.rivals.turn.leave()
	hidden, unread := b.readClaims(ctx)
	for _, err := range hidden {
		b.Log.Warn("claims of another bridge can't be read; its topics are unknown", "error", err)
	}
	return unread, b.Sole(b.constant(), b.rivals.claims)
}

// soleBehind refuses the topics of the frontier of an earlier start. Without a frontier nothing of this bridge is in
// the topics, so the start waits until the claims can be read. With one, an earlier start has read them.
func (b *Bridge) soleBehind(ctx context.Context, f *offsets.Frontier, unread error) error {
	if err := b.rivals.turn.take(ctx); err != nil {
		return err
	}
	defer b.rivals.turn.leave()
	if b.rivals.first = f == nil; b.rivals.first {
		return unread
	}
	if unread != nil {
		b.Log.Warn("claims of other bridges can't be read for now; their topics are unknown", "error", unread)
	}
	return b.Sole(slices.Sorted(maps.Keys(f.Topics)), b.rivals.claims)
}

// stillSole reads the claims again behind the first frontier, before that names a segment: offsets.Claim shows two
// first starts at a time. An instance that has read a frontier at its start has read the claims behind it.
func (w *worker) stillSole(f *offsets.Frontier) error {
	if err := w.rivals.turn.take(w.work); err != nil {
		return err
	}
	defer w.rivals.turn.leave()
	if !w.rivals.first {
		return nil
	}
	return w.ask(w.work, func(ctx context.Context) error {
		if _, err := w.readClaims(ctx); err != nil {
			return err
		}
		if err := w.Sole(append(slices.Sorted(maps.Keys(f.Topics)), w.constant()...), w.rivals.claims); err != nil {
			return err
		}
		w.rivals.first = false
		return nil
	})
}

// newTopic refuses a topic of a template that belongs to another bridge. Two bridges with different templates that
// meet the same topic within claimsAge miss each other here. The next start of either finds the topic in both states.
func (w *worker) newTopic(ctx context.Context, topic string) error {
	if err := w.rivals.turn.take(ctx); err != nil {
		return err
	}
	defer w.rivals.turn.leave()
	if time.Since(w.rivals.read) > claimsAge {
		if _, err := w.readClaims(ctx); err != nil {
			return err
		}
	}
	return w.Sole([]string{topic}, w.rivals.claims)
}

func (b *Bridge) constant() []string {
	if topic, ok := b.Topics.Constant(); ok {
		return []string{topic}
	}
	return nil
}
