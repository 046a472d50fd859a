package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
)

// manyTopics is the number of topics above which only those are listed that are not ok.
const manyTopics = 10

// topics checks each topic.
func (ck *checker) topics(ctx context.Context, all []topic) {
	before := len(*ck.Findings)
	for i := range all {
		ck.topic(ctx, &all[i])
	}
	if n := len(all); n > manyTopics {
		left := slices.DeleteFunc((*ck.Findings)[before:], func(f Finding) bool { return f.Status == OK })
		*ck.Findings = (*ck.Findings)[:before+len(left)]
		ck.Add("topic", OK, fmt.Sprintf("%d topics were checked; those not listed are ok", n), "")
	}
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
	ck.Add("topic", Failed, t.Name+" does not exist", gone.Advice())
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
	ck.Add("topic", OK, fmt.Sprintf("%s has %s, replication factor %d", t.Name, plain.Count(len(all), "partition"),
		replicas), "")
	return replicas
}

// creatable asks whether the topic could be created, and does not create it.
func (ck *checker) creatable(ctx context.Context, t *topic) {
	req := kmsg.NewPtrCreateTopicsRequest()
	req.ValidateOnly = true
	rt := kmsg.NewCreateTopicsRequestTopic()
	rt.Topic, rt.NumPartitions, rt.ReplicationFactor = t.Name, t.Partitions, ck.bridge.TopicReplication
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
			cmp.Or(topics.CreateAdvice(err), ck.advice(err)))
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
