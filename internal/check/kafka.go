package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"net"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"blobfeed/bridge"
	"blobfeed/internal/kafka"
	"blobfeed/internal/pause"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// askTimeout bounds each request to the brokers.
const askTimeout = 15 * time.Second

var errNoAnswer = errors.New("no answer in time")

// checker checks the brokers for one bridge.
type checker struct {
	*Findings
	of     *Bridge
	bridge *bridge.Options // of the same
	client *kafka.Client   // of the same
	opts   []kgo.Opt
	cl     *kgo.Client
	now    time.Time

	broker     topics.Settings   // of one; empty if they can't be read
	txnVersion int16             // the feature transaction.version of the brokers
	frontier   *offsets.Frontier // of an earlier start
	stored     *offsets.State    // with that frontier
	unread     error             // why the state can't be read
}

func newChecker(b *Bridge, now time.Time, fs *Findings) (*checker, error) {
	opts, err := b.Kafka.Options()
	if err != nil {
		return nil, err
	}
	cl, err := kgo.NewClient(append(opts, kgo.RetryTimeout(askTimeout), kgo.RequestRetries(3))...)
	if err != nil {
		return nil, fmt.Errorf("creating the Kafka client: %w", err)
	}
	return &checker{Findings: fs, of: b, bridge: b.Options, client: b.Kafka, opts: opts, cl: cl, now: now}, nil
}

func (ck *checker) admin() *kadm.Client { return kadm.NewClient(ck.cl) }

// kafka tries what a bridge does with the brokers, and writes no record: reach and credentials, every permission, the
// topics' settings, transactions.
func (ck *checker) kafka(ctx context.Context) {
	ck.certificate()
	if !ck.reach(ctx) {
		return
	}
	ck.readState(ctx)
	ck.uses(ctx, ck.plan(ctx))
}

// uses checks what run does with the brokers that answer.
func (ck *checker) uses(ctx context.Context, all []topic) {
	ck.topics(ctx, all)
	ck.group(ctx)
	ck.session()
	ck.transactions(ctx)
}

// ask sends a request, and returns the answer. The answer's error codes are the caller's.
func ask[R kmsg.Response](ctx context.Context, to kmsg.Requestor, req kmsg.Request) (R, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errNoAnswer)
	defer cancel()
	resp, err := to.Request(ctx, req)
	if err != nil {
		var none R
		if ctx.Err() != nil {
			err = fmt.Errorf("%w: %w", context.Cause(ctx), err)
		}
		return none, err
	}
	return resp.(R), nil
}

// advice says what to do about an error of the brokers.
func (ck *checker) advice(err error) string {
	do := ck.client.Advice(err)
	if errors.Is(err, errNoAnswer) || do == kafka.Silent { // which names this check
		return silentBroker
	}
	return cmp.Or(do, "see the error: address, network, or another kind of port "+
		"(BRIDGE_KAFKA_BROKERS, BRIDGE_KAFKA_TLS_ENABLED, BRIDGE_KAFKA_SASL_MECHANISM)")
}

const silentBroker = "the brokers are overloaded or hang, the port is of another service, or a firewall or proxy is " +
	"in between: look at their logs"

func (ck *checker) unreached(status Status, what string, err error) {
	text, do := plain.SplitRemedy(without(what, err)) // credentials have one of their own
	ck.Add("kafka", status, what+": "+text, cmp.Or(do, ck.advice(err)))
}

// without returns the error of a connection to address, which the caller names.
func without(address string, err error) error {
	if op, is := errors.AsType[*net.OpError](err); is && op.Addr != nil && op.Addr.String() == address {
		return op.Err
	}
	return err
}

// reach asks every broker that the settings name, and every one that those name in turn: brokers send clients to what
// they advertise, and that address may be unreachable from here.
func (ck *checker) reach(ctx context.Context) bool {
	var versions *kmsg.ApiVersionsResponse
	seeds := ck.cl.SeedBrokers()
	errs := make([]error, len(seeds))
	for i, seed := range seeds {
		resp, err := ask[*kmsg.ApiVersionsResponse](ctx, seed, versionsRequest())
		if errs[i] = err; err == nil {
			versions = resp
		}
	}
	down := Failed
	if versions != nil {
		down = Warning // run uses another address
	}
	for i, err := range errs {
		if err != nil {
			ck.unreached(down, ck.client.Brokers[i], err)
		}
	}
	if versions == nil {
		return false
	}
	ck.txnVersion = transactionVersion(versions)
	none := &kmsg.MetadataRequest{Version: 0, Topics: []kmsg.MetadataRequestTopic{}}
	m, err := ask[*kmsg.MetadataResponse](ctx, ck.cl, none)
	if err != nil {
		ck.unreached(Failed, "asking for the brokers", err)
		return false
	}
	for _, b := range m.Brokers {
		if _, err := ask[*kmsg.ApiVersionsResponse](ctx, ck.cl.Broker(int(b.NodeID)), versionsRequest()); err != nil {
			at := net.JoinHostPort(b.Host, strconv.Itoa(int(b.Port)))
			ck.Add("kafka", Failed, fmt.Sprintf("broker %d, which advertises %s: %v", b.NodeID, at, without(at, err)),
				"the brokers' advertised.listeners must name addresses that this machine reaches; "+ck.advice(err))
		} else if ck.broker == nil {
			if all, err := ck.admin().DescribeBrokerConfigs(ctx, b.NodeID); err == nil && len(all) == 1 {
				ck.broker = topics.SettingsOf(all[0]) // none if that is not permitted: run needs none of them
			}
		}
	}
	how := "not encrypted"
	if ck.client.TLS != nil {
		how = "TLS"
	}
	if s := ck.client.SASL; s != nil {
		how += ", " + s.Mechanism
	}
	ck.Add("kafka", OK, fmt.Sprintf("reached %s (Kafka %s), credentials are accepted (%s)",
		plain.Count(len(m.Brokers), "broker"), kversion.FromApiVersionsResponse(versions).VersionGuess(), how), "")
	return true
}

// transactionVersion returns the version of transactions that the brokers have agreed on. From 2 on (KIP-890) every
// transaction has an epoch of its own, so the brokers reject a request that arrives late.
func transactionVersion(versions *kmsg.ApiVersionsResponse) int16 {
	for _, f := range versions.FinalizedFeatures {
		if f.Name == "transaction.version" {
			return f.MaxVersionLevel
		}
	}
	return 0
}

func versionsRequest() *kmsg.ApiVersionsRequest {
	req := kmsg.NewPtrApiVersionsRequest()
	req.ClientSoftwareName, req.ClientSoftwareVersion = "bridge", "1" // brokers reject the request without
	return req
}

// certificate warns of a client certificate that ends soon.
func (ck *checker) certificate() {
	if ck.client.TLS == nil {
		return
	}
	leaf, err := ck.client.TLS.Leaf()
	if err != nil {
		ck.Add("certificate", Failed, err.Error(),
			"see BRIDGE_KAFKA_TLS_CA_FILE, BRIDGE_KAFKA_TLS_CERT_FILE and BRIDGE_KAFKA_TLS_KEY_FILE")
		return
	}
	if leaf == nil {
		return
	}
	text := func(verb string) string {
		return fmt.Sprintf("the client certificate of %s %s %s", leaf.Subject, verb, leaf.NotAfter.Format(time.RFC3339))
	}
	switch {
	case ck.now.After(leaf.NotAfter):
		ck.Add("certificate", Failed, text("ended at"), "replace its file")
	case leaf.NotAfter.Sub(ck.now) < soon:
		ck.Add("certificate", Warning, text("ends at"), "replace its file in time; it is read for every connection")
	default:
		ck.Add("certificate", OK, text("is valid until"), "")
	}
}

// session compares how long members may be silent with what the brokers permit.
func (ck *checker) session() {
	have := ck.bridge.Kafka.Session
	least, lower := topics.Millis(ck.broker["group.min.session.timeout.ms"])
	most, upper := topics.Millis(ck.broker["group.max.session.timeout.ms"])
	reject := func(bound string, limit time.Duration) {
		ck.Add("group", Failed, fmt.Sprintf("the brokers permit no sessions of %s: their %s is %s", have, bound, limit),
			fmt.Sprintf("set BRIDGE_SESSION_TIMEOUT=%s, or change the setting of the brokers", limit))
	}
	switch {
	case lower && have < least:
		reject("group.min.session.timeout.ms", least)
	case upper && have > most:
		reject("group.max.session.timeout.ms", most)
	case lower && upper:
		ck.Add("group", OK, fmt.Sprintf("sessions of %s are permitted", have), "")
	}
}

// txnID returns the transactional id of a lease, or of this check.
func (ck *checker) txnID(of any) string { return fmt.Sprint(ck.bridge.Name, "-", of) }

// leaseIDs returns the transactional ids of the leases.
func (ck *checker) leaseIDs() (ids []string) {
	for lease := range ck.bridge.Kafka.Leases {
		ids = append(ids, ck.txnID(lease))
	}
	return ids
}

// transactions takes a transactional id that no lease has: taking a lease's own would fence its owner.
func (ck *checker) transactions(ctx context.Context) {
	req := kmsg.NewPtrInitProducerIDRequest()
	what, own, exactly := "idempotent writes", ck.txnID("check"), ck.bridge.Kafka.Transactional
	if exactly {
		what = "transactions"
		req.TransactionalID, req.TransactionTimeoutMillis = &own, int32(ck.bridge.Kafka.TxnTimeout.Milliseconds())
	}
	var err error
	for began := time.Now(); ; {
		var resp *kmsg.InitProducerIDResponse
		if resp, err = ask[*kmsg.InitProducerIDResponse](ctx, ck.cl, req); err == nil {
			err = kerr.ErrorForCode(resp.ErrorCode)
		}
		// Brokers that have just started load their transactions first. The client retries that for a second.
		if !errors.Is(err, kerr.CoordinatorLoadInProgress) && !errors.Is(err, kerr.CoordinatorNotAvailable) ||
			time.Since(began) > askTimeout || pause.For(ctx, time.Second) != nil {
			break
		}
	}
	switch {
	case err == nil, errors.Is(err, kerr.ConcurrentTransactions):
		if exactly {
			ck.leases(ctx, true)
		}
		ck.Add("transactions", OK, what+" are available", "")
		if exactly {
			ck.version()
		}
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		ck.leases(ctx, false)
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		ck.Add("acl", Failed, "IDEMPOTENT_WRITE on the cluster, which brokers before Kafka 3.0 need, or WRITE on a "+
			"topic is missing", ck.grant("IdempotentWrite", "--cluster"))
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		ck.Add("transactions", Failed,
			fmt.Sprintf("the brokers permit no transactions of %s", ck.bridge.Kafka.TxnTimeout),
			"lower BRIDGE_TXN_TIMEOUT to the brokers' transaction.max.timeout.ms, or raise that")
	case exactly:
		ck.Add("transactions", Failed, fmt.Sprintf("%s are not available: %v", what, err),
			"if these brokers have no transactions, set BRIDGE_DELIVERY=at_least_once; if they should have them, see "+
				"the topic __transaction_state: its replication factor and min.insync.replicas must fit the number of "+
				"brokers")
	default:
		ck.Add("transactions", Failed, fmt.Sprintf("%s are not available: %v", what, err), ck.advice(err))
	}
}

// version warns of brokers whose transactions a late request can leave open.
func (ck *checker) version() {
	if ck.txnVersion >= 2 {
		return
	}
	ck.Add("transactions", Warning, fmt.Sprintf("the brokers have transaction.version=%d: a produce request that "+
		"arrives after the end of its transaction can leave one open that nobody ends, and read_committed consumers "+
		"of that partition stop there", ck.txnVersion),
		"run Kafka 4.0 or newer with kafka-features.sh upgrade --feature transaction.version=2; until then, "+
			"kafka-transactions.sh find-hanging and abort end such a transaction")
}

// leases checks the permission for the id of each lease, since ids can be permitted one by one. To take one would fence
// its owner, so this asks what Write includes: to describe it. Brokers before Kafka 3.0 don't answer that, so all are
// as the id of this check, which run does not need.
func (ck *checker) leases(ctx context.Context, own bool) {
	ids := ck.leaseIDs()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var missing []string
	answered := 0
	for _, shard := range ck.cl.RequestSharded(ctx, req) {
		if errors.Is(shard.Err, kerr.TransactionalIDAuthorizationFailed) { // Kafka does not even name the coordinator
			missing = append(missing, shard.Req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs...)
		}
		if shard.Err != nil {
			continue
		}
		for _, s := range shard.Resp.(*kmsg.DescribeTransactionsResponse).TransactionStates {
			answered++
			if errors.Is(kerr.ErrorForCode(s.ErrorCode), kerr.TransactionalIDAuthorizationFailed) {
				missing = append(missing, s.TransactionalID)
			}
		}
	}
	if answered == 0 && !own {
		missing = ids
	}
	if len(missing) == 0 {
		ck.Add("acl", OK, "WRITE on transactional ids "+ck.txnID("*"), "")
		if check := ck.txnID("check"); !own {
			ck.Add("acl", Warning, "WRITE on transactional id "+check+" is missing: only check needs it, and did not "+
				"try transactions", ck.grant("Write", "--transactional-id", check))
		}
		return
	}
	slices.Sort(missing)
	detail := fmt.Sprintf("WRITE on %d of %d transactional ids of leases is missing", len(missing), len(ids))
	if !own {
		missing = append(missing, ck.txnID("check"))
	}
	ck.Add("acl", Failed, detail, ck.grant("Write", "--transactional-id", missing...))
}

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
	} else if ck.client.TLS != nil {
		if leaf, err := ck.client.TLS.Leaf(); err == nil && leaf != nil {
			principal = leaf.Subject.String() // unless the brokers map it
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
