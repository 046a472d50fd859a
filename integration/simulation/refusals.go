package simulation

import (
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// lossy are the requests whose loss matters: they change something, or their answers decide.
var lossy = []kmsg.Key{
	kmsg.Produce, kmsg.Produce, kmsg.EndTxn, kmsg.EndTxn, kmsg.InitProducerID, kmsg.AddPartitionsToTxn, kmsg.Fetch,
	kmsg.ListOffsets, kmsg.Heartbeat, kmsg.JoinGroup, kmsg.SyncGroup, kmsg.Metadata, kmsg.FindCoordinator,
}

// stalled are the requests of connections of their own. Without answers to Fetch an instance works on what it knew. One
// whose Heartbeat waits continues while the group gives its leases away. A late EndTxn ends the transaction of a former
// owner.
var stalled = []kmsg.Key{
	kmsg.Fetch, kmsg.Fetch, kmsg.Heartbeat, kmsg.Heartbeat, kmsg.EndTxn, kmsg.InitProducerID, kmsg.Produce,
	kmsg.ListOffsets,
}

// refusals are the errors that brokers answer when they are busy, move, restart, or have given up on a client.
var refusals = []struct {
	key  kmsg.Key
	errs []*kerr.Error
}{
	{kmsg.Produce, []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.NotEnoughReplicas, kerr.NotEnoughReplicasAfterAppend, kerr.RequestTimedOut,
		kerr.KafkaStorageError, kerr.ConcurrentTransactions, kerr.TopicAuthorizationFailed, kerr.InvalidProducerEpoch,
		kerr.InvalidTxnState, kerr.MessageTooLarge,
	}},
	{kmsg.InitProducerID, []*kerr.Error{
		kerr.ConcurrentTransactions, kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.CoordinatorLoadInProgress,
		kerr.TransactionalIDAuthorizationFailed,
	}},
	{kmsg.AddPartitionsToTxn, []*kerr.Error{
		kerr.ConcurrentTransactions, kerr.NotCoordinator, kerr.CoordinatorLoadInProgress, kerr.InvalidProducerEpoch,
		kerr.InvalidTxnState,
	}},
	{kmsg.EndTxn, []*kerr.Error{
		kerr.ConcurrentTransactions, kerr.NotCoordinator, kerr.CoordinatorNotAvailable, kerr.InvalidProducerEpoch,
		kerr.ProducerFenced, kerr.InvalidTxnState, kerr.RequestTimedOut,
	}},
	{kmsg.Fetch, []*kerr.Error{
		kerr.NotLeaderForPartition, kerr.KafkaStorageError, kerr.UnknownLeaderEpoch, kerr.ReplicaNotAvailable,
	}},
	{kmsg.ListOffsets, []*kerr.Error{kerr.NotLeaderForPartition, kerr.LeaderNotAvailable, kerr.KafkaStorageError}},
	{kmsg.FindCoordinator, []*kerr.Error{kerr.CoordinatorNotAvailable}},
	{kmsg.JoinGroup, []*kerr.Error{kerr.CoordinatorLoadInProgress, kerr.NotCoordinator, kerr.UnknownMemberID}},
	{kmsg.SyncGroup, []*kerr.Error{kerr.RebalanceInProgress, kerr.NotCoordinator, kerr.UnknownMemberID}},
	{kmsg.Heartbeat, []*kerr.Error{
		kerr.UnknownMemberID, kerr.IllegalGeneration, kerr.CoordinatorNotAvailable, kerr.NotCoordinator,
	}},
	{kmsg.Metadata, []*kerr.Error{kerr.LeaderNotAvailable}},
}
