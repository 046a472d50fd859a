package kafka

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"blobfeed/internal/check"
)

// checkTimeout bounds each question to the brokers.
const checkTimeout = 15 * time.Second

// Check tries what a bridge does with the brokers, and writes no record: reach and credentials, every permission, the
// topics' settings, transactions. Needs is called when the brokers answer: what they hold may matter to it.
func Check(ctx context.Context, c *Client, needs func(context.Context) (*Needs, error), now time.Time, fs *check.Findings) error {
	opts, err := c.Options()
	if err != nil {
		return err
	}
	cl, err := kgo.NewClient(append(opts, kgo.RetryTimeout(checkTimeout), kgo.RequestRetries(3))...)
	if err != nil {
		return fmt.Errorf("creating the Kafka client: %w", err)
	}
	defer cl.Close()
	ck := &checker{cl: cl, client: c, Findings: fs}
	ck.certificate(now)
	if !ck.reach(ctx) {
		return nil
	}
	if ck.needs, err = needs(ctx); err != nil {
		return err
	}
	ck.topics(ctx)
	ck.group(ctx)
	ck.session()
	ck.transactions(ctx)
	return nil
}

type checker struct {
	*check.Findings
	cl     *kgo.Client
	client *Client
	needs  *Needs
	broker map[string]string // settings of one; empty where they may not be read

	txnVersion int16 // the feature transaction.version of the brokers
}

// ask sends a request that somebody answers. The answer's own error codes are the caller's.
func ask[R kmsg.Response](ctx context.Context, to kmsg.Requestor, req kmsg.Request) (R, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, checkTimeout, errors.New("no answer in time"))
	defer cancel()
	resp, err := to.Request(ctx, req)
	if err != nil {
		var none R
		if ctx.Err() != nil {
			err = errors.Join(err, context.Cause(ctx))
		}
		return none, err
	}
	return resp.(R), nil
}

// reach asks every broker that the settings name, and every one that those name in turn: clients are sent on to what
// the brokers advertise, and that may be unreachable from here.
func (ck *checker) reach(ctx context.Context) bool {
	var versions *kmsg.ApiVersionsResponse
	for i, seed := range ck.cl.SeedBrokers() {
		resp, err := ask[*kmsg.ApiVersionsResponse](ctx, seed, versionsRequest())
		if err != nil {
			ck.Add("kafka", check.Failed, fmt.Sprintf("%s: %v", ck.client.Brokers[i], err), ck.advice(err))
			continue
		}
		versions = resp
	}
	if versions == nil {
		return false
	}
	ck.txnVersion = transactionVersion(versions)
	m, err := ask[*kmsg.MetadataResponse](ctx, ck.cl, &kmsg.MetadataRequest{Version: 0, Topics: []kmsg.MetadataRequestTopic{}})
	if err != nil {
		ck.Add("kafka", check.Failed, fmt.Sprintf("asking for the brokers: %v", err), ck.advice(err))
		return false
	}
	for _, b := range m.Brokers {
		if _, err := ask[*kmsg.ApiVersionsResponse](ctx, ck.cl.Broker(int(b.NodeID)), versionsRequest()); err != nil {
			ck.Add("kafka", check.Failed, fmt.Sprintf("broker %d, which advertises %s:%d: %v", b.NodeID, b.Host, b.Port, err),
				"the brokers' advertised.listeners must name addresses that this machine reaches; "+ck.advice(err))
		} else if ck.broker == nil {
			ck.broker, _ = ck.describe(ctx, kmsg.ConfigResourceTypeBroker, strconv.Itoa(int(b.NodeID))) // run does without the right
		}
	}
	how := "not encrypted"
	if ck.client.TLS != nil {
		how = "TLS"
	}
	if s := ck.client.SASL; s != nil {
		how += ", " + s.Mechanism
	}
	ck.Add("kafka", check.OK, fmt.Sprintf("%d brokers answer (Kafka %s), credentials are accepted (%s)", len(m.Brokers),
		kversion.FromApiVersionsResponse(versions).VersionGuess(), how), "")
	return true
}

// transactionVersion returns the version of transactions that the brokers have agreed on. From 2 on (KIP-890) every
// transaction has
// an epoch of its own, so what arrives late is refused.
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
	req.ClientSoftwareName, req.ClientSoftwareVersion = "bridge", "1" // brokers refuse it without
	return req
}

// manyTopics are more than anybody reads about.
const manyTopics = 10

// topics looks at each, and of many tells only what is not ok.
func (ck *checker) topics(ctx context.Context) {
	before, n := len(*ck.Findings), len(ck.needs.Topics)
	for i := range n {
		ck.topic(ctx, &ck.needs.Topics[i])
	}
	if n > manyTopics {
		told := slices.DeleteFunc((*ck.Findings)[before:], func(f check.Finding) bool { return f.Status == check.OK })
		*ck.Findings = (*ck.Findings)[:before+len(told)]
		ck.Add("topic", check.OK, fmt.Sprintf("%d topics were looked at; what is not told of them is ok", n), "")
	}
}

// certificate warns of a client certificate that ends soon.
func (ck *checker) certificate(now time.Time) {
	if ck.client.TLS == nil {
		return
	}
	leaf, err := ck.client.TLS.Leaf()
	if err != nil {
		ck.Add("certificate", check.Failed, err.Error(), "see BRIDGE_KAFKA_TLS_CA_FILE, BRIDGE_KAFKA_TLS_CERT_FILE and BRIDGE_KAFKA_TLS_KEY_FILE")
		return
	}
	switch {
	case leaf == nil:
	case now.After(leaf.NotAfter):
		ck.Add("certificate", check.Failed, fmt.Sprintf("the client certificate of %s ended at %s", leaf.Subject, leaf.NotAfter.Format(time.RFC3339)), "replace its file")
	case leaf.NotAfter.Sub(now) < 7*24*time.Hour:
		ck.Add("certificate", check.Warning, fmt.Sprintf("the client certificate of %s ends at %s", leaf.Subject, leaf.NotAfter.Format(time.RFC3339)),
			"replace its file in time; it is read for every connection")
	default:
		ck.Add("certificate", check.OK, fmt.Sprintf("client certificate of %s, good until %s", leaf.Subject, leaf.NotAfter.Format(time.RFC3339)), "")
	}
}

// group finds out whether we may be a member, with a heartbeat of nobody: rights are looked at first.
func (ck *checker) group(ctx context.Context) {
	req := kmsg.NewPtrHeartbeatRequest()
	req.Group, req.MemberID = ck.needs.Group, "bridge-check"
	resp, err := ask[*kmsg.HeartbeatResponse](ctx, ck.cl, req)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	what := "READ on group " + ck.needs.Group
	switch {
	case errors.Is(err, kerr.GroupAuthorizationFailed):
		ck.Add("acl", check.Failed, what+" is missing", ck.grant("Read", "--group", ck.needs.Group))
	case err == nil, errors.Is(err, kerr.UnknownMemberID), errors.Is(err, kerr.IllegalGeneration), errors.Is(err, kerr.RebalanceInProgress), errors.Is(err, kerr.GroupIDNotFound):
		ck.Add("acl", check.OK, what, "")
	default:
		ck.Add("acl", check.Failed, fmt.Sprintf("%s: %v", what, err), ck.advice(err))
	}
}

// session compares how long members may be silent with what the brokers permit.
func (ck *checker) session() {
	have := ck.needs.Session
	least, lower := millis(ck.broker["group.min.session.timeout.ms"])
	most, upper := millis(ck.broker["group.max.session.timeout.ms"])
	refuse := func(bound string, limit time.Duration) {
		ck.Add("group", check.Failed, fmt.Sprintf("the brokers permit no sessions of %s: their %s is %s", have, bound, limit),
			fmt.Sprintf("set BRIDGE_SESSION_TIMEOUT=%s, or change that", limit))
	}
	switch {
	case lower && have < least:
		refuse("group.min.session.timeout.ms", least)
	case upper && have > most:
		refuse("group.max.session.timeout.ms", most)
	case lower && upper:
		ck.Add("group", check.OK, fmt.Sprintf("sessions of %s are permitted", have), "")
	}
}

// transactions takes a transactional id that no lease has: taking a lease's own would fence its owner.
func (ck *checker) transactions(ctx context.Context) {
	req := kmsg.NewPtrInitProducerIDRequest()
	what, prefix := "transactions", ck.needs.Txn
	if prefix != "" {
		id := ck.needs.checkID()
		req.TransactionalID, req.TransactionTimeoutMillis = &id, int32(ck.needs.TxnTimeout.Milliseconds())
	} else {
		what = "idempotent writes"
	}
	resp, err := ask[*kmsg.InitProducerIDResponse](ctx, ck.cl, req)
	if err == nil {
		err = kerr.ErrorForCode(resp.ErrorCode)
	}
	switch {
	case err == nil, errors.Is(err, kerr.ConcurrentTransactions):
		if prefix != "" {
			ck.leases(ctx)
		}
		ck.Add("transactions", check.OK, what+" are available", "")
		if prefix != "" && ck.txnVersion < 2 {
			ck.Add("transactions", check.Warning, fmt.Sprintf("the brokers have transaction.version=%d: a produce request that arrives after the end of "+
				"its transaction can leave one open that nobody ends, and read_committed consumers of that partition stop there", ck.txnVersion),
				"run Kafka 4.0 or newer with kafka-features.sh upgrade --feature transaction.version=2; until then, kafka-transactions.sh "+
					"find-hanging and abort end such a transaction")
		}
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		ck.Add("acl", check.Failed, "WRITE on transactional ids "+prefix+"* is missing",
			ck.grant("Write", "--transactional-id", append(ck.needs.leaseIDs(), ck.needs.checkID())...))
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		ck.Add("acl", check.Failed, "IDEMPOTENT_WRITE on the cluster is missing, which brokers before Kafka 3.0 want, or WRITE on a topic",
			ck.grant("IdempotentWrite", "--cluster"))
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		ck.Add("transactions", check.Failed, fmt.Sprintf("the brokers permit no transactions of %s", ck.needs.TxnTimeout),
			"lower BRIDGE_TXN_TIMEOUT to the brokers' transaction.max.timeout.ms, or raise that")
	case prefix != "":
		ck.Add("transactions", check.Failed, fmt.Sprintf("%s are not available: %v", what, err),
			"if these brokers have no transactions, set BRIDGE_DELIVERY=at_least_once; if they should, look at the topic __transaction_state: "+
				"its replication factor and min.insync.replicas must fit the number of brokers")
	default:
		ck.Add("transactions", check.Failed, fmt.Sprintf("%s are not available: %v", what, err), ck.advice(err))
	}
}

// leases looks whether each id of a lease is permitted, where ids are permitted one by one. Taking one would fence
// its owner,
// so this asks what Write includes: to describe it. Brokers before Kafka 3.0 can't be asked.
func (ck *checker) leases(ctx context.Context) {
	ids := ck.needs.leaseIDs()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	resp, err := ask[*kmsg.DescribeTransactionsResponse](ctx, ck.cl, req)
	var missing []string
	if err == nil {
		for _, s := range resp.TransactionStates {
			if errors.Is(kerr.ErrorForCode(s.ErrorCode), kerr.TransactionalIDAuthorizationFailed) {
				missing = append(missing, s.TransactionalID)
			}
		}
	}
	if len(missing) == 0 {
		ck.Add("acl", check.OK, "WRITE on transactional ids "+ck.needs.Txn+"*", "")
		return
	}
	slices.Sort(missing)
	ck.Add("acl", check.Failed, fmt.Sprintf("WRITE on %d of %d transactional ids of leases is missing", len(missing), len(ids)),
		ck.grant("Write", "--transactional-id", missing...))
}

// grant returns the command that adds a permission. Names are literal: a prefix of one bridge's may be that of
// another's.
func (ck *checker) grant(operation, resource string, names ...string) string {
	who := "<principal>"
	if s := ck.client.SASL; s != nil && s.Mechanism != "OAUTHBEARER" {
		if user, _, err := s.Credentials(); err == nil {
			who = user
		}
	}
	words := []string{ck.client.Tool("kafka-acls.sh"), "--add", "--allow-principal", quote("User:" + who), "--operation", operation}
	for _, name := range names {
		words = append(words, resource, quote(name))
	}
	if len(names) == 0 {
		words = append(words, resource)
	}
	return strings.Join(words, " ")
}

// quote quotes a word for a shell, if it must be.
func quote(word string) string {
	plain := func(r rune) bool {
		return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._:@/=-", r)
	}
	if word != "" && !slices.ContainsFunc([]rune(word), func(r rune) bool { return !plain(r) }) {
		return word
	}
	return "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
}
