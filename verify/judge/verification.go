package judge

import (
	"context"
	"time"

	"blobfeed/verify"
)

// verification is one run.
type verification struct {
	Options
	cluster cluster
	avro    *verify.Avro // nil: no record is in Avro
	sharing *sharing     // nil: no other bridge may write to the topics
	limits  limits       // of --account
	since   *since       // of --follow: how far former rounds came; nil: this is the only round
}

func newVerification(o Options) *verification {
	v := &verification{Options: o, cluster: brokers(o.Client), limits: censusLimits}
	if o.Schema != nil {
		v.avro = verify.NewAvro(func(id int) (string, error) { return o.Schema(context.Background(), id) })
	}
	return v
}

// limits bound what a census keeps in memory.
type limits struct {
	keys        int           // of the topics, at a time, with about 40 bytes each
	differences int           // that differ at first and are looked at again, with some hundred bytes each
	poll        time.Duration // how often those are looked at
}

var censusLimits = limits{keys: 8 << 20, differences: 256 << 10, poll: 5 * time.Second}
