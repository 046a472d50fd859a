package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"

	"blobfeed/bridge/pipeline"
	"blobfeed/envelope"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/offsets"
)

// Sole rejects topics that another bridge writes to. Two bridges on one topic break what each promises of it: the
// markers of one speak for the other's records, and with one feed every event comes twice.
func (o *Options) Sole(topics []string, claims []offsets.Claim) error {
	for _, c := range claims {
		for _, own := range []string{plain.StateTopic(c.Name), plain.DeadLetterTopic(c.Name)} {
			if slices.Contains(topics, own) {
				return plain.WithRemedy(plain.SettingsErrorf("topic %s is the state or the dead letters of bridge %s",
					own, c.Name), "set another BRIDGE_TOPIC")
			}
		}
		topic, taken := o.shares(topics, &c)
		if !taken || o.Shared && c.Feed != o.Feed {
			continue
		}
		twice, share := "", "to bring several accounts into one topic, set BRIDGE_TOPIC_SHARED=true for each of "+
			"their bridges (docs/operations.md#one-topic-for-several-accounts says what still holds); "
		if c.Feed == o.Feed {
			twice, share = ": both read the same feed, so every event would come twice", ""
		}
		err := plain.SettingsErrorf("topic %s belongs to bridge %s, which reads feed %s and has its state in "+
			"topic %s%s", topic, c.Name, c.Feed, plain.StateTopic(c.Name), twice)
		return plain.WithRemedy(err, fmt.Sprintf("set another BRIDGE_TOPIC; %sif %s is retired, run bridge reset "+
			"--yes with BRIDGE_NAME=%[2]s", share, c.Name))
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
			theirs[plain.MarkerTopic(topic)] = true
		}
	}
	for _, topic := range RecordTopics(c) {
		add(topic)
	}
	for _, topic := range topics {
		if theirs[topic] || o.Plan.Beside && theirs[plain.MarkerTopic(topic)] {
			return topic, true
		}
	}
	// The same template for the same feed gives the same topics. Others may never meet: rejectForeign looks at
	// each topic (lease.go).
	template := c.Settings[offsets.FrozenTopic]
	return template, strings.Contains(template, "{") && template == o.Template && c.Feed == o.Feed
}

// claimsAge is how old the claims of other bridges may be for a new topic of a template. Thousands of containers may
// have topics with records, such as after a reset.
const claimsAge = time.Minute

// A bridge asks whose a topic is once: when it first claims one that holds records. A start costs the same beside one
// bridge and beside a thousand, since nobody asks about an empty topic, or about one of the own state.

// rejectTaken rejects the topic of all records if it is used, and belongs to another bridge.
func (c *Catalog) rejectTaken(ctx context.Context) (used bool, _ error) {
	names := c.Constant()
	topic, err := c.firstUsed(ctx, names)
	if topic == "" || err != nil {
		return false, err
	}
	claims, err := c.readClaims(ctx, 0)
	if err != nil {
		return true, err
	}
	return true, c.Sole(names, claims)
}

// Admit returns why a first start may not make its topics: the topic of all records is another bridge's, or the
// registry has no schemas for it.
func (c *Catalog) Admit(ctx context.Context) error {
	if _, err := c.rejectTaken(ctx); err != nil {
		return err
	}
	for _, name := range c.Constant() {
		if _, err := c.Encoder(ctx, name); err != nil {
			return &pipeline.EncoderError{Err: err}
		}
	}
	return nil
}

// firstUsed returns the first topic that holds records, if there is one.
func (c *Catalog) firstUsed(ctx context.Context, names []string) (string, error) {
	for _, name := range names {
		if used, err := c.used(ctx, name); used || err != nil {
			return name, err
		}
	}
	return "", nil
}

// used reports whether a topic, or that of its markers, holds records, or may do so: reading it may not be permitted.
func (c *Catalog) used(ctx context.Context, name string) (bool, error) {
	names := []string{name}
	if c.Plan.Beside {
		names = append(names, plain.MarkerTopic(name))
	}
	for _, name := range names {
		used, err := c.Admin.Used(ctx, name, c.Client)
		if used || errors.Is(err, kerr.TopicAuthorizationFailed) {
			return true, nil
		}
		if err != nil {
			return false, err
		}
	}
	return false, nil
}

// readClaims returns the claims of the other bridges, which may have that age. A read takes time for each bridge.
func (c *Catalog) readClaims(ctx context.Context, age time.Duration) ([]offsets.Claim, error) {
	read := func(ctx context.Context) ([]offsets.Claim, []error, error) {
		return offsets.Claims(ctx, kadm.NewClient(c.Admin.Client), "", c.Client...)
	}
	claims, hidden, err := c.Claims.of(ctx, c.Bridge, age, read)
	for _, err := range hidden {
		c.Log.Warn("claims of another bridge can't be read; its topics are unknown", "error", err)
	}
	return claims, err
}

// StillSole looks again before each step of the frontier, until a record of this bridge is in its topic: another bridge
// may have begun to write there since the start, which may be long ago if the feed has no events. Two bridges whose
// first records come at the same moment miss each other; bridge check finds them.
func (c *Catalog) StillSole(ctx context.Context, s *offsets.State) error {
	if c.sole.Load() {
		return nil
	}
	used := s.Frontier.Resolved != "" || s.Written() // by this bridge
	var err error
	if !used {
		used, err = c.rejectTaken(ctx)
	}
	c.sole.Store(used && err == nil)
	return err
}

// RejectRepeats rejects a first start on topics that hold records. If no other bridge has written them, they are of
// this one, whose progress was lost: then all of them would come twice. A reset or a seek says that they may.
func (c *Catalog) RejectRepeats(ctx context.Context) error {
	names, err := c.existing(ctx)
	if err != nil {
		return err
	}
	topic, err := c.firstUsed(ctx, names)
	if topic == "" || err != nil {
		return err
	}
	claims, err := c.readClaims(ctx, 0)
	if err != nil {
		return err
	}
	if err := c.Sole(c.Constant(), claims); err != nil {
		return err
	}
	theirs := func(name string) bool { // such as with TOPIC_SHARED
		return slices.ContainsFunc(claims, func(c offsets.Claim) bool {
			return slices.Contains(RecordTopics(&c), name)
		})
	}
	if topic, err = c.firstUsed(ctx, slices.DeleteFunc(names, theirs)); topic == "" || err != nil {
		return err
	}
	return c.Repeats(topic)
}

// existing returns the topics that the bridge has written to, if it has ever run. Without a literal prefix, or if
// topics with other records are adopted, each topic of a template is looked at when its first event comes.
func (c *Catalog) existing(ctx context.Context) ([]string, error) {
	if names := c.Constant(); names != nil || c.Adopt || !c.Names.Prefixed() {
		return names, nil
	}
	all, err := kadm.NewClient(c.Admin.Client).ListTopics(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the topics of BRIDGE_TOPIC: %w", err)
	}
	return slices.DeleteFunc(all.Names(), func(name string) bool { return !c.Names.Owns(name) }), nil
}

// Repeats is the error for a topic that holds records, although the bridge has no progress.
func (o *Options) Repeats(topic string) error {
	err := plain.SettingsErrorf("topic %s holds records, and bridge %s has no progress in topic %s: if that was lost, "+
		"every event would come twice", topic, o.Bridge, o.state())
	return plain.WithRemedy(err, "to continue at a place, run bridge seek --to <time> --yes; to deliver from "+
		"BRIDGE_START whatever the topic holds, run bridge reset --yes; or set another BRIDGE_TOPIC")
}

// Claims are the claims of all bridges on the brokers, as the bridges of a process read them. A read takes time for
// each bridge there is. So one read serves all that wait for it: else the first starts of n bridges that share a topic
// would read n² states.
type Claims struct {
	// Guarded by turn, which is taken while claims are read.
	turn   pause.Turn
	began  time.Time // of the last read
	all    []offsets.Claim
	hidden []error
	err    error
}

// NewClaims returns claims that are not read yet.
func NewClaims() *Claims { return &Claims{turn: pause.NewTurn()} }

// of returns what offsets.Claims does for the bridge of a name, by a read that began after this call: a claim that was
// committed before is in it. A read that has worked may also be of that age; then hidden is empty, since it was told.
func (c *Claims) of(
	ctx context.Context, name string, age time.Duration, read func(context.Context) ([]offsets.Claim, []error, error),
) (claims []offsets.Claim, hidden []error, err error) {
	asked := time.Now()
	if err := c.turn.Take(ctx); err != nil {
		return nil, nil, err
	}
	defer c.turn.Leave()
	others := func() []offsets.Claim {
		return slices.DeleteFunc(slices.Clone(c.all), func(claim offsets.Claim) bool { return claim.Name == name })
	}
	if age > 0 && c.err == nil && c.began.After(asked.Add(-age)) {
		return others(), nil, nil
	}
	if !c.began.After(asked) {
		began := time.Now()
		all, hidden, err := read(ctx)
		if err != nil && ctx.Err() != nil {
			return nil, nil, err // the caller's end is not the others'
		}
		c.began, c.all, c.hidden, c.err = began, all, hidden, err
	}
	return others(), c.hidden, c.err
}
