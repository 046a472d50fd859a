package check

import (
	"context"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
)

// group finds out whether the bridge may be a member, with a heartbeat of no member: brokers look at rights first.
func (ck *checker) group(ctx context.Context) {
	name := ck.bridge.Name
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID = name, "bridge-check"
	resp, err := ask[*kmsg.HeartbeatResponse](ctx, ck.cl, req)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	what := "READ on group " + name
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		ck.Add("acl", Failed, what+" is missing", ck.grant("Read", "--group", name))
	case err == nil, errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration),
		errors.Is(err, kerr.RebalanceInProgress), errors.Is(err, kerr.GroupIDNotFound):
		ck.Add("acl", OK, what, "")
	default:
		ck.Add("acl", Failed, fmt.Sprintf("%s: %v", what, err), ck.advice(err))
	}
}

// operations returns what must be permitted on a topic while it exists.
func (t *topic) operations() []kmsg.ACLOperation {
	ops := []kmsg.ACLOperation{kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs}
	if t.Kind == topics.State {
		ops = append(ops, kmsg.ACLOperationRead)
	}
	return ops
}

// permissions compares the operations that the broker permits, a bit each, with those needed.
func (ck *checker) permissions(bits int32, t *topic) {
	if bits == math.MinInt32 { // the broker does not say
		ck.Add("acl", Warning, "the brokers do not say what is permitted on topic "+t.Name, "")
		return
	}
	for _, op := range t.operations() {
		ck.permission(op, t, bits&(1<<op) != 0)
	}
}

func (ck *checker) permission(op kmsg.ACLOperation, t *topic, permitted bool) {
	if permitted {
		ck.Add("acl", OK, fmt.Sprintf("%s on topic %s", op, t.Name), "")
		return
	}
	ck.Add("acl", Failed, fmt.Sprintf("%s on topic %s is missing", op, t.Name),
		ck.grant(operationFlags[op], "--topic", t.Name))
}

// operationFlags are the names that kafka-acls.sh takes.
var operationFlags = map[kmsg.ACLOperation]string{
	kmsg.ACLOperationRead: "Read", kmsg.ACLOperationWrite: "Write",
	kmsg.ACLOperationCreate: "Create", kmsg.ACLOperationDescribeConfigs: "DescribeConfigs",
}

// grant returns the command that adds a permission. Names are literal: a prefix of one bridge's may be that of
// another's.
func (ck *checker) grant(operation, resource string, names ...string) string {
	principal := "<principal>"
	if s := ck.client.SASL; s != nil && s.Mechanism != "OAUTHBEARER" {
		if user, _, err := s.Credentials(); err == nil {
			principal = user
		}
	}
	words := []string{"kafka-acls.sh", ck.client.ToolFlags(), "--add",
		"--allow-principal", plain.Shell("User:" + principal),
		"--operation", operation}
	for _, name := range names {
		words = append(words, resource, plain.Shell(name))
	}
	if len(names) == 0 {
		words = append(words, resource)
	}
	return strings.Join(words, " ")
}
