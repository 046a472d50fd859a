// Package fakebroker starts Kafka brokers within a test's own process.
package fakebroker

import (
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// New starts one broker, or as many as opts say. It ends with the test. It wants no metrics of clients: each client
// would compress and push them as it closes, and all of that took a third of the processor time of tests.
func New(t testing.TB, opts ...kfake.Opt) *kfake.Cluster {
	t.Helper()
	c, err := kfake.NewCluster(append([]kfake.Opt{kfake.NumBrokers(1)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	c.ControlKey(int16(kmsg.GetTelemetrySubscriptions), func(req kmsg.Request) (kmsg.Response, error, bool) {
		c.KeepControl()
		resp := req.ResponseKind().(*kmsg.GetTelemetrySubscriptionsResponse)
		resp.PushIntervalMillis = int32(time.Hour.Milliseconds())
		return resp, nil, true
	})
	return c
}

// Client returns a client of the brokers. It ends with the test.
func Client(t testing.TB, c *kfake.Cluster, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(c.ListenAddrs()...)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

// Admin returns a client that creates and describes topics. It ends with the test.
func Admin(t testing.TB, c *kfake.Cluster) *kadm.Client { return kadm.NewClient(Client(t, c)) }
