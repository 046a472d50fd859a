package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"iter"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/bridge"
	"blobfeed/bridge/pipeline"
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
	state := topics.Topic{Kind: topics.State, Name: plain.StateTopic(o.Name), Partitions: o.Kafka.Leases}
	if f != nil {
		state.Largest = f.Size(nil)
	} else {
		first := offsets.Frontier{Feed: o.Feed.ID, Settings: o.Records.Frozen}
		state.Largest = first.Size(nil)
	}
	if name, one := o.Topics.Names.Constant(); !one {
		ck.Add("topic", Warning, "BRIDGE_TOPIC="+o.Records.Frozen[offsets.FrozenTopic]+" names many topics; "+
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
	if o.Topics.DeadLetter != "" {
		add(topics.Topic{Kind: topics.DeadLetters, Name: o.Topics.DeadLetter, Partitions: 1, Largest: largest}, false)
	}
	return all
}

// escaped warns of characters that Kafka does not allow: the topic has another name.
func (fs *Findings) escaped(o *bridge.Options) {
	template := o.Records.Frozen[offsets.FrozenTopic]
	own := strings.NewReplacer("{account}", "", "{container}", "").Replace(template)
	if envelope.KafkaName(own) == own {
		return
	}
	name, known := o.Topics.Names.Constant()
	if !known {
		name, _ = o.Topics.Names.Name("account", "container") // of an example, which is valid
	}
	fs.Add("topic", Warning, fmt.Sprintf("BRIDGE_TOPIC=%s has characters that Kafka does not allow: the topic is "+
		"called %s", template, name), "use letters, digits, '.', '_' and '-' only, unless the name is meant")
}

// oldest returns the time of the first event that run will read; zero: unknown, or there is none.
func (ck *checker) oldest(ctx context.Context) (at time.Time) {
	switch f := ck.frontier; {
	case f != nil && f.At() != (source.Segment{}):
		return f.At().Time()
	case f == nil && ck.unread == nil:
		// An error is a finding of the feed.
		h := history.New(ck.bridge.Feed.Source, 0)
		place, err := history.ParseTarget(ck.place())
		if err != nil { // there is none
			at, _, _ = h.Oldest(ctx, ck.bridge.Feed.Start, ck.now)
			return at
		}
		after, _ := place.Begin()
		at = place.Time()
		if first, ok, _ := h.Next(ctx, after); ok && first.Time().After(at) {
			at = first.Time()
		}
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
		plain.Count(len(f.Topics), "topic"), plain.Number(o.Topics.Create.Limit)), do)
	if o.Topics.Adopt && !o.Topics.Names.Prefixed() {
		ck.Add("topics", Warning, "a client that may create containers can have records written "+
			"to any topic that these credentials may write to",
			"begin BRIDGE_TOPIC with a literal text, or unset BRIDGE_TOPIC_ADOPT")
	}
	pin := offsets.Pin{Partitions: o.Topics.Create.Partitions}
	if ck.of.Record.KeyFormat == envelope.KeyAvro {
		pin.KeySchema = 1_000_000
	}
	pins := map[string]offsets.Pin{}
	for i := len(f.Topics); i < o.Topics.Create.Limit; i++ {
		pins[fmt.Sprintf("%0*d", ck.of.LongestTopic, i)] = pin
	}
	return f.Size(pins)
}

// manyTopics is the number of topics above which only those are listed that are not ok.
const manyTopics = 10

// topics checks each topic.
func (ck *checker) topics(ctx context.Context, all []topic) {
	before := len(*ck.Findings)
	var of []string // the topic of each finding from before on
	for i := range all {
		ck.topic(ctx, &all[i])
		of = append(of, slices.Repeat([]string{all[i].Name}, len(*ck.Findings)-before-len(of))...)
	}
	if n := len(all); n > manyTopics {
		*ck.Findings = append((*ck.Findings)[:before], folded((*ck.Findings)[before:], of)...)
		ck.Add("topic", OK, fmt.Sprintf("%d topics were checked; those not listed are ok", n), "")
	}
}

// folded returns what is not ok, and each warning once for all topics that have it. Of is the topic of each finding.
func folded(found Findings, of []string) (left Findings) {
	first, also := map[Finding]int{}, map[int][]string{} // the place of a warning, and the further topics that have it
	for i, f := range found {
		if f.Status == OK {
			continue
		}
		nameless := f
		nameless.Detail = strings.ReplaceAll(f.Detail, of[i], "*")
		nameless.Do = strings.ReplaceAll(f.Do, of[i], "*")
		if at, again := first[nameless]; again && f.Status == Warning { // the command of a failure is needed for each
			also[at] = append(also[at], of[i])
			continue
		}
		first[nameless] = len(left)
		left = append(left, f)
	}
	for at, names := range also {
		text := strings.Join(names[:min(2, len(names))], ", ")
		if more := len(names) - 2; more > 0 {
			text += fmt.Sprintf(" and %d more", more)
		}
		left[at].Detail += " (also " + text + ")"
	}
	return left
}

// topic checks one topic: whether it exists, what is permitted there, and whether its settings keep what the bridge
// promises.
func (ck *checker) topic(ctx context.Context, t *topic) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &t.Name
	req.Topics = append(req.Topics, rt)
	resp, err := ask[*kmsg.MetadataResponse](ctx, ck.cl, req)
	if err == nil && len(resp.Topics) != 1 {
		err = errors.New("the answer is about another topic")
	}
	if err != nil {
		ck.Add("topic", Failed, fmt.Sprintf("%s: %v", t.Name, err), ck.advice(err))
		return
	}
	m := resp.Topics[0]
	switch err := kerr.ErrorForCode(m.ErrorCode); {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		ck.hidden(ctx, t)
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		ck.permissions(m.AuthorizedOperations, t)
		ck.absent(ctx, t)
	case err != nil:
		ck.Add("topic", Failed, fmt.Sprintf("%s: %v", t.Name, err), ck.advice(err))
	default:
		replicas := ck.partitions(t, m.Partitions)
		ck.permissions(m.AuthorizedOperations, t)
		ck.settings(ctx, t, replicas)
	}
}

// hidden checks a topic of which the brokers do not even say whether it exists. The right to read or to write would be
// enough for that, so only DescribeConfigs may be there.
func (ck *checker) hidden(ctx context.Context, t *topic) {
	for _, op := range t.operations() {
		permitted := false
		if op == kmsg.ACLOperationDescribeConfigs {
			_, err := topics.Read(ctx, ck.admin(), t.Name)
			permitted = !errors.Is(err, kerr.TopicAuthorizationFailed)
		}
		ck.permission(op, t, permitted)
	}
	if t.create {
		ck.creatable(ctx, t)
	}
}

// absent checks a topic that does not exist.
func (ck *checker) absent(ctx context.Context, t *topic) {
	if t.create {
		ck.creatable(ctx, t)
		return
	}
	plan := ck.bridge.TopicPlan()
	gone := plan.Lost(&t.Topic)
	if !t.had {
		gone.Had = 0
	}
	ck.Add("topic", Failed, strings.TrimPrefix(gone.Cause(), "topic "), gone.Remedy())
}

// partitions checks the partitions, and returns the smallest number of replicas.
func (ck *checker) partitions(t *topic, all []kmsg.MetadataResponseTopicPartition) (replicas int) {
	replicas = math.MaxInt
	for _, p := range all {
		replicas = min(replicas, len(p.Replicas))
		if p.ErrorCode != 0 || p.Leader < 0 {
			ck.Add("topic", Failed, fmt.Sprintf("partition %d of %s has no leader", p.Partition, t.Name),
				"bring its brokers back")
		} else if len(p.ISR) < len(p.Replicas) {
			ck.Add("topic", Warning, fmt.Sprintf("partition %d of %s has %d of %d replicas in sync", p.Partition,
				t.Name, len(p.ISR), len(p.Replicas)), "look at its brokers")
		}
	}
	if t.had && len(all) < int(t.Partitions) { // Kafka removes none
		plan := ck.bridge.TopicPlan()
		ck.Add("topic", Failed, fmt.Sprintf("%s has %s and had %d: it was deleted and created again, and its records "+
			"are gone", t.Name, plain.Count(len(all), "partition"), t.Partitions),
			plan.Enlarge(t.Name, t.Partitions))
		return replicas
	}
	ck.Add("topic", OK, fmt.Sprintf("%s has %s, replication factor %d", t.Name, plain.Count(len(all), "partition"),
		replicas), "")
	return replicas
}

// creatable asks whether the topic could be created, and does not create it.
func (ck *checker) creatable(ctx context.Context, t *topic) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.ValidateOnly = true
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = t.Name, t.Partitions, ck.bridge.Topics.Create.Replication
	if t.asked {
		rt.ReplicationFactor = -1
	}
	req.Topics = append(req.Topics, rt)
	resp, err := ask[*kmsg.CreateTopicsResponse](ctx, ck.cl, req)
	message := ""
	if err == nil && len(resp.Topics) == 1 {
		err = kerr.ErrorForCode(resp.Topics[0].ErrorCode)
		if m := resp.Topics[0].ErrorMessage; m != nil {
			message = ": " + *m
		}
	}
	switch {
	case err == nil && t.asked:
		ck.asked(t)
	case err == nil:
		ck.Add("topic", OK, fmt.Sprintf("%s does not exist; run creates it with %s", t.Name,
			plain.Count(t.Partitions, "partition")), "")
	case errors.Is(err, kerr.TopicAlreadyExists):
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		ck.permission(kmsg.ACLOperationCreate, t, false)
	default:
		ck.Add("topic", Failed, fmt.Sprintf("%s does not exist and can't be created: %v%s", t.Name, err, message),
			ck.advice(err))
	}
}

// asked reports whether brokers will create a topic that run asks for.
func (ck *checker) asked(t *topic) {
	const setting, do = "auto.create.topics.enable", "create it, or set BRIDGE_TOPIC_CREATE=explicit"
	detail := fmt.Sprintf("%s does not exist; run asks the brokers for it (%s=%s)", t.Name, setting,
		cmp.Or(ck.broker[setting], "?"))
	switch ck.broker[setting] {
	case "true":
		ck.Add("topic", OK, detail, "")
	case "false":
		ck.Add("topic", Failed, detail, do)
	default: // reading it is not permitted
		ck.Add("topic", Warning, detail,
			"the brokers need "+setting+"=true to create it; if they do not have that, "+do)
	}
}

// settings judges the settings of a topic.
func (ck *checker) settings(ctx context.Context, t *topic, replicas int) {
	all, err := topics.Read(ctx, ck.admin(), t.Name)
	if errors.Is(err, kerr.TopicAuthorizationFailed) {
		return // a finding already
	}
	if err != nil {
		ck.Add("settings", Failed, err.Error(), ck.advice(err))
		return
	}
	plan := ck.bridge.TopicPlan()
	problems := plan.Judge(&t.Topic, all[t.Name], replicas, ck.now)
	for _, p := range problems {
		status := Warning
		if p.Severity >= topics.Fault {
			status = Failed
		}
		ck.Add("settings", status, p.Detail(), p.Do)
	}
	if len(problems) == 0 {
		ck.Add("settings", OK, "topic "+t.Name+" keeps what the bridge promises", "")
	}
}

// largest returns the size of the largest record of the feed's first events, as run would send it; 0: none is known.
// It needs no registry: any id of a schema has the same length.
func (b *Bridge) largest() (size int) {
	o := b.Record
	o.Topic = "sample"
	o.Register = func(envelope.Subject) (int, error) { return 1, nil }
	e, err := envelope.NewEncoder(o)
	if err != nil {
		return 0 // an error of the settings, or of the registry, which has a finding of its own
	}
	for ev := range b.emitted() {
		var r envelope.Record
		if _, emit, err := e.Append(nil, &r, ev, source.Position{}); err == nil && emit {
			size = max(size, pipeline.Size(&r))
		}
	}
	return size
}

// emitted yields those of the feed's first events that the settings do not leave out.
func (b *Bridge) emitted() iter.Seq[*source.Event] {
	return func(yield func(*source.Event) bool) {
		for i := range b.sample {
			ev := &b.sample[i]
			match, err := b.Options.Feed.Filter.Match(ev)
			emits := err == nil && match && b.Options.Records.Events.Emits(envelope.Classify(ev))
			if emits && !yield(ev) {
				return
			}
		}
	}
}
