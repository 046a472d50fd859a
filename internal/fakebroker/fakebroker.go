// Package fakebroker makes kfake do as Kafka does, for tests that need it.
package fakebroker

import (
	"hash/fnv"
	"math"

	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// AbortOpen makes a broker abort what a transactional id has open when a new client takes it. kfake does so only for a client
// that names the producer, whose number it makes from the id; without it the cursor of a transaction that was left open would
// be committed by the next owner, and the records that it covers would never come.
func AbortOpen(c *kfake.Cluster) {
	known := map[string]bool{}
	c.ControlKey(int16(kmsg.InitProducerID), func(req kmsg.Request) (kmsg.Response, error, bool) {
		r := req.(*kmsg.InitProducerIDRequest)
		if r.TransactionalID == nil || r.ProducerID >= 0 {
			return nil, nil, false
		}
		if id := *r.TransactionalID; known[id] {
			h := fnv.New64()
			_, _ = h.Write([]byte(id))
			r.ProducerID, r.ProducerEpoch = int64(h.Sum64())&math.MaxInt64, 0
		} else {
			known[id] = true
		}
		return nil, nil, false
	})
}
