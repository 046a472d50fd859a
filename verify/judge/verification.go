package judge

import (
	"context"

	"blobfeed/verify"
)

// verification is one run.
type verification struct {
	Options
	cluster cluster
	avro    *verify.Avro // nil: no record is in Avro
	sharing *sharing     // nil: no other bridge may write to the topics
}

func newVerification(o Options) *verification {
	v := &verification{Options: o, cluster: brokers(o.Client)}
	if o.Schema != nil {
		v.avro = verify.NewAvro(func(id int) (string, error) { return o.Schema(context.Background(), id) })
	}
	return v
}
