package check

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"

	"blobfeed/internal/pause"
)

// txnID returns the transactional id of a lease, or of this check.
func (ck *checker) txnID(of any) string { return fmt.Sprint(ck.bridge.Name, "-", of) }

// leaseIDs returns the transactional ids of the leases.
func (ck *checker) leaseIDs() (ids []string) {
	for lease := range ck.bridge.OffsetsPartitions {
		ids = append(ids, ck.txnID(lease))
	}
	return ids
}

// transactions takes a transactional id that no lease has: taking a lease's own would fence its owner.
func (ck *checker) transactions(ctx context.Context) {
	req := kmsg.NewPtrInitProducerIDRequest()
	what, own, exactly := "idempotent writes", ck.txnID("check"), ck.bridge.Transactional
	if exactly {
		what = "transactions"
		req.TransactionalID, req.TransactionTimeoutMillis = &own, int32(ck.bridge.TxnTimeout.Milliseconds())
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
			ck.leases(ctx)
		}
		ck.Add("transactions", OK, what+" are available", "")
		if exactly {
			ck.version()
		}
	case errors.Is(err, kerr.TransactionalIDAuthorizationFailed):
		ck.Add("acl", Failed, "WRITE on transactional ids "+ck.txnID("*")+" is missing",
			ck.grant("Write", "--transactional-id", append(ck.leaseIDs(), own)...))
	case errors.Is(err, kerr.ClusterAuthorizationFailed):
		ck.Add("acl", Failed, "IDEMPOTENT_WRITE on the cluster, which brokers before Kafka 3.0 need, or WRITE on a "+
			"topic is missing", ck.grant("IdempotentWrite", "--cluster"))
	case errors.Is(err, kerr.InvalidTransactionTimeout):
		ck.Add("transactions", Failed, fmt.Sprintf("the brokers permit no transactions of %s", ck.bridge.TxnTimeout),
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
// its owner, so this asks what Write includes: to describe it. Brokers before Kafka 3.0 don't answer that.
func (ck *checker) leases(ctx context.Context) {
	ids := ck.leaseIDs()
	req := kmsg.NewPtrDescribeTransactionsRequest()
	req.TransactionalIDs = ids
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	var missing []string
	for _, shard := range ck.cl.RequestSharded(ctx, req) {
		if errors.Is(shard.Err, kerr.TransactionalIDAuthorizationFailed) { // Kafka does not even name the coordinator
			missing = append(missing, shard.Req.(*kmsg.DescribeTransactionsRequest).TransactionalIDs...)
		}
		if shard.Err != nil {
			continue
		}
		for _, s := range shard.Resp.(*kmsg.DescribeTransactionsResponse).TransactionStates {
			if errors.Is(kerr.ErrorForCode(s.ErrorCode), kerr.TransactionalIDAuthorizationFailed) {
				missing = append(missing, s.TransactionalID)
			}
		}
	}
	if len(missing) == 0 {
		ck.Add("acl", OK, "WRITE on transactional ids "+ck.txnID("*"), "")
		return
	}
	slices.Sort(missing)
	ck.Add("acl", Failed,
		fmt.Sprintf("WRITE on %d of %d transactional ids of leases is missing", len(missing), len(ids)),
		ck.grant("Write", "--transactional-id", missing...))
}
