package kafka

import (
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kmsg"
)

// Needs are what a bridge needs of the brokers, for Check and for the manual.
type Needs struct {
	Topics     []Topic
	Group      string
	Session    time.Duration // of its members
	Txn        string        // prefix of transactional ids; "": no transactions
	TxnTimeout time.Duration // of transactions
	Leases     int32         // each has a transactional id: the prefix and its number
}

// leaseIDs returns the transactional ids of the leases.
func (n *Needs) leaseIDs() (ids []string) {
	for lease := range n.Leases {
		ids = append(ids, fmt.Sprint(n.Txn, lease))
	}
	return ids
}

// checkID is the transactional id that Check takes: those of a running bridge would be fenced.
func (n *Needs) checkID() string { return n.Txn + "check" }

// Topic is one that the bridge uses.
type Topic struct {
	Name        string
	Read        bool // it is written in any case
	Create      bool // if it is missing
	Asked       bool // by the brokers, when they are asked for it, and not by the bridge
	Records     bool // there were some in it, so it is not created in place of one that is gone
	Partitions  int32
	Replication int16
	EventTimes  bool // its records' timestamps are those of events, which may be years old
	Keyless     bool // it gets records without keys
	Compacted   bool // only the last record of a key is ever needed, and that one for good
	Largest     int  // bytes of its largest record; 0: not known
	Grows       int  // the same, when the bridge has made as many topics as it may
}

// operations returns what must be permitted on t while it exists.
func (t *Topic) operations() []kmsg.ACLOperation {
	ops := []kmsg.ACLOperation{kmsg.ACLOperationWrite, kmsg.ACLOperationDescribeConfigs}
	if t.Read {
		ops = append(ops, kmsg.ACLOperationRead)
	}
	return ops
}
