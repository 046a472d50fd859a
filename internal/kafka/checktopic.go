package kafka

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/check"
)

// topic looks at one topic: is it there, may we use it, do its settings keep what the bridge promises?
func (ck *checker) topic(ctx context.Context, t *Topic) {
	req := kmsg.NewPtrMetadataRequest()
	req.IncludeTopicAuthorizedOperations = true
	rt := kmsg.NewMetadataRequestTopic()
	rt.Topic = &t.Name
	req.Topics = append(req.Topics, rt)
	resp, err := ask[*kmsg.MetadataResponse](ctx, ck.cl, req)
	if err == nil && len(resp.Topics) != 1 {
		err = errors.New("the answer is about something else")
	}
	if err != nil {
		ck.Add("topic", check.Failed, fmt.Sprintf("%s: %v", t.Name, err), ck.advice(err))
		return
	}
	m := resp.Topics[0]
	switch err := kerr.ErrorForCode(m.ErrorCode); {
	case errors.Is(err, kerr.TopicAuthorizationFailed):
		// Not even whether it exists is told: to read or to write would be enough for that.
		for _, op := range t.operations() {
			if op == kmsg.ACLOperationDescribeConfigs {
				if _, err := ck.describe(ctx, kmsg.ConfigResourceTypeTopic, t.Name); !errors.Is(err, kerr.TopicAuthorizationFailed) {
					ck.Add("acl", check.OK, fmt.Sprintf("%s on topic %s", op, t.Name), "")
					continue
				}
			}
			ck.missing(op, t)
		}
		if t.Create {
			ck.creatable(ctx, t)
		}
		return
	case errors.Is(err, kerr.UnknownTopicOrPartition):
		ck.permissions(m.AuthorizedOperations, t)
		if t.Create {
			ck.creatable(ctx, t)
			return
		}
		advice := "create it, or set BRIDGE_TOPIC_CREATE=explicit"
		switch {
		case t.Records:
			advice = fmt.Sprintf("its records are gone: create it with %d partitions, as it had, to go on with what comes, or start over with bridge reset, or with another BRIDGE_NAME and BRIDGE_TOPIC", t.Partitions)
		case t.Compacted:
			advice = fmt.Sprintf("create it with cleanup.policy=compact and %d partitions, or set BRIDGE_TOPIC_CREATE=explicit", t.Partitions)
		}
		ck.Add("topic", check.Failed, t.Name+" does not exist", advice)
		return
	case err != nil:
		ck.Add("topic", check.Failed, fmt.Sprintf("%s: %v", t.Name, err), ck.advice(err))
		return
	}
	replicas := math.MaxInt
	for _, p := range m.Partitions {
		replicas = min(replicas, len(p.Replicas))
		if p.ErrorCode != 0 || p.Leader < 0 {
			ck.Add("topic", check.Failed, fmt.Sprintf("partition %d of %s has no leader", p.Partition, t.Name), "bring its brokers back")
		} else if len(p.ISR) < len(p.Replicas) {
			ck.Add("topic", check.Warning, fmt.Sprintf("partition %d of %s has %d of %d replicas in sync", p.Partition, t.Name, len(p.ISR), len(p.Replicas)), "look at its brokers")
		}
	}
	ck.Add("topic", check.OK, fmt.Sprintf("%s has %d partitions, replication factor %d", t.Name, len(m.Partitions), replicas), "")
	ck.permissions(m.AuthorizedOperations, t)
	ck.configs(ctx, t, replicas)
}

// permissions compares the operations that the broker says we may do, a bit each, with those needed.
func (ck *checker) permissions(bits int32, t *Topic) {
	if bits == math.MinInt32 { // not told
		ck.Add("acl", check.Warning, "the brokers do not say what is permitted on topic "+t.Name, "")
		return
	}
	for _, op := range t.operations() {
		if bits&(1<<op) == 0 {
			ck.missing(op, t)
		} else {
			ck.Add("acl", check.OK, fmt.Sprintf("%s on topic %s", op, t.Name), "")
		}
	}
}

func (ck *checker) missing(op kmsg.ACLOperation, t *Topic) {
	ck.Add("acl", check.Failed, fmt.Sprintf("%s on topic %s is missing", op, t.Name), ck.grant(operationFlags[op], "--topic", t.Name))
}

// operationFlags are the names that kafka-acls.sh takes.
var operationFlags = map[kmsg.ACLOperation]string{
	kmsg.ACLOperationRead: "Read", kmsg.ACLOperationWrite: "Write", kmsg.ACLOperationCreate: "Create", kmsg.ACLOperationDescribeConfigs: "DescribeConfigs",
}

// creatable asks whether the topic could be created, and does not.
func (ck *checker) creatable(ctx context.Context, t *Topic) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.ValidateOnly = true
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = t.Name, t.Partitions, t.Replication
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
	case err == nil && t.Asked:
		ck.asked(t)
	case err == nil:
		ck.Add("topic", check.OK, fmt.Sprintf("%s does not exist; run creates it with %d partitions", t.Name, t.Partitions), "")
	case errors.Is(err, kerr.TopicAlreadyExists):
	case errors.Is(err, kerr.TopicAuthorizationFailed), errors.Is(err, kerr.ClusterAuthorizationFailed):
		ck.missing(kmsg.ACLOperationCreate, t)
	default:
		ck.Add("topic", check.Failed, fmt.Sprintf("%s does not exist and can't be created: %v%s", t.Name, err, message), "see BRIDGE_TOPIC_PARTITIONS and BRIDGE_TOPIC_REPLICATION, or create it yourself")
	}
}

// asked tells whether brokers will create a topic that run asks for.
func (ck *checker) asked(t *Topic) {
	const setting = "auto.create.topics.enable"
	detail := fmt.Sprintf("%s does not exist; run asks the brokers for it (%s=%s)", t.Name, setting, cmp.Or(ck.broker[setting], "?"))
	switch ck.broker[setting] {
	case "true":
		ck.Add("topic", check.OK, detail, "")
	case "false":
		ck.Add("topic", check.Failed, detail, "create it, or set BRIDGE_TOPIC_CREATE=explicit")
	default: // it may not be read
		ck.Add("topic", check.Warning, detail, "the brokers need "+setting+"=true to create it; if they do not have that, create it, or set BRIDGE_TOPIC_CREATE=explicit")
	}
}

// describe reads the settings of a topic or a broker.
func (ck *checker) describe(ctx context.Context, of kmsg.ConfigResourceType, name string) (map[string]string, error) {
	req := kmsg.NewPtrDescribeConfigsRequest()
	r := kmsg.NewDescribeConfigsRequestResource()
	r.ResourceType, r.ResourceName = of, name
	req.Resources = append(req.Resources, r)
	resp, err := ask[*kmsg.DescribeConfigsResponse](ctx, ck.cl, req)
	if err == nil && len(resp.Resources) != 1 {
		err = errors.New("the answer is about something else")
	}
	if err != nil {
		return nil, err
	}
	if err := kerr.ErrorForCode(resp.Resources[0].ErrorCode); err != nil {
		return nil, err
	}
	values := map[string]string{}
	for _, c := range resp.Resources[0].Configs {
		if c.Value != nil {
			values[c.Name] = *c.Value
		}
	}
	return values, nil
}

// configs looks at the settings of a topic that is there.
func (ck *checker) configs(ctx context.Context, t *Topic, replicas int) {
	values, err := ck.describe(ctx, kmsg.ConfigResourceTypeTopic, t.Name)
	switch {
	case errors.Is(err, kerr.TopicAuthorizationFailed): // said already
	case err != nil:
		ck.Add("settings", check.Failed, fmt.Sprintf("reading the settings of topic %s: %v", t.Name, err), ck.advice(err))
	default:
		judge(t, values, replicas, ck.client.Tool("kafka-configs.sh"), ck.Findings)
	}
}

// judge compares a topic's settings with what its records need. Tool begins the commands that alter them.
func judge(t *Topic, values map[string]string, replicas int, tool string, fs *check.Findings) {
	before := len(*fs)
	alter := func(name, value string) string {
		return fmt.Sprintf("%s --alter --topic %s --add-config %s=%s", tool, quote(t.Name), name, value)
	}
	add := func(status check.Status, name, why, do string) {
		fs.Add("settings", status, fmt.Sprintf("topic %s has %s=%s: %s", t.Name, name, values[name], why), do)
	}
	policy := strings.Split(strings.ReplaceAll(values["cleanup.policy"], " ", ""), ",")
	switch {
	case values["cleanup.policy"] == "":
	case t.Compacted && (len(policy) > 1 || policy[0] != "compact"):
		add(check.Failed, "cleanup.policy", "progress would be deleted", alter("cleanup.policy", "compact"))
	case t.Keyless && slices.Contains(policy, "compact"):
		add(check.Failed, "cleanup.policy", "the brokers would refuse resolved markers, which have no key", "set BRIDGE_RESOLVED_TO=off, or "+alter("cleanup.policy", "delete"))
	}
	insync, err := strconv.Atoi(values["min.insync.replicas"])
	switch {
	case err != nil:
	case insync > replicas:
		add(check.Failed, "min.insync.replicas", fmt.Sprintf("it has %d replicas, so nothing can be written", replicas), alter("min.insync.replicas", strconv.Itoa(max(1, replicas-1))))
	case replicas < 2:
		fs.Add("settings", check.Warning, fmt.Sprintf("topic %s has one replica: a broker that is lost takes committed records with it", t.Name), "use a replication factor of 3 where it matters")
	case insync < 2:
		add(check.Warning, "min.insync.replicas", "a record may be acknowledged while one broker has it, and lost with that", alter("min.insync.replicas", "2"))
	}
	if values["unclean.leader.election.enable"] == "true" {
		add(check.Warning, "unclean.leader.election.enable", "a leader that lags may be elected, and committed records be lost", alter("unclean.leader.election.enable", "false"))
	}
	if most, err := strconv.Atoi(values["max.message.bytes"]); err == nil {
		switch need := 2 * max(t.Largest, t.Grows); {
		case t.Largest > most:
			add(check.Failed, "max.message.bytes", fmt.Sprintf("progress takes %d bytes and can't be written", t.Largest), alter("max.message.bytes", strconv.Itoa(2*need)))
		case need > most:
			add(check.Warning, "max.message.bytes", fmt.Sprintf("half of that must hold the names of all topics, which may take %d bytes; further topics are refused before", need/2),
				"lower BRIDGE_TOPIC_LIMIT, or "+alter("max.message.bytes", strconv.Itoa(need)))
		}
	}
	if t.EventTimes {
		judgeTimes(values, add, alter)
	}
	if len(*fs) == before {
		fs.Add("settings", check.OK, "topic "+t.Name+" keeps what the bridge promises", "")
	}
}

// judgeTimes looks at what becomes of records whose timestamps are in the past.
func judgeTimes(values map[string]string, add func(status check.Status, name, why, do string), alter func(name, value string) string) {
	if values["message.timestamp.type"] == "LogAppendTime" {
		add(check.Warning, "message.timestamp.type", "consumers see when a record came to Kafka, not when the blob changed", alter("message.timestamp.type", "CreateTime"))
		return // then records are as old as their arrival
	}
	for _, name := range []string{"message.timestamp.before.max.ms", "message.timestamp.difference.max.ms"} {
		if age, ok := millis(values[name]); ok && age < 100*365*24*time.Hour {
			add(check.Failed, name, fmt.Sprintf("the brokers refuse events that are older than %s", age), alter(name, strconv.FormatInt(math.MaxInt64, 10)))
		}
	}
	if age, ok := millis(values["retention.ms"]); ok && strings.Contains(values["cleanup.policy"], "delete") {
		add(check.Warning, "retention.ms", fmt.Sprintf("age counts from the blob's change: of history older than %s nothing stays", age),
			alter("retention.ms", "-1")+"  (until what is old has been read, or for good)")
	}
}

// millis parses a number of milliseconds; -1 and what is longer than a duration holds is no bound.
func millis(text string) (time.Duration, bool) {
	ms, err := strconv.ParseInt(text, 10, 64)
	if err != nil || ms < 0 || ms > math.MaxInt64/int64(time.Millisecond) {
		return 0, false
	}
	return time.Duration(ms) * time.Millisecond, true
}
