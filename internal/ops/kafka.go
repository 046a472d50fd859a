package ops

import (
	"context"
	"errors"
	"maps"
	"net"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kprom"
)

// clients counts for all Kafka clients of the instance together. kprom is made for one client: it registers its metrics
// for each client, which fails for the second, and its buffer gauges ask the first client, which may be closed.
type clients struct {
	*kprom.Metrics
	monitor *Monitor
	once    sync.Once

	mu   sync.Mutex
	live map[*kgo.Client]struct{}
}

func newClients(reg prometheus.Registerer, m *Monitor) *clients {
	c := &clients{
		monitor: m,
		Metrics: kprom.NewMetrics(Namespace+"_kafka", kprom.Registerer(&vectors{reg}),
			kprom.FetchAndProduceDetail(kprom.ByNode, kprom.Batches, kprom.Records, kprom.CompressedBytes,
				kprom.UncompressedBytes, kprom.ConsistentNaming),
			kprom.HistogramsFromOpts(
				kprom.HistogramOpts{Enable: kprom.RequestDurationE2E, Buckets: requestBuckets},
				kprom.HistogramOpts{Enable: kprom.RequestThrottled, Buckets: requestBuckets})),
		live: map[*kgo.Client]struct{}{},
	}
	for name, buffered := range map[string]func(*kgo.Client) int64{
		"kafka_buffered_produce_records": (*kgo.Client).BufferedProduceRecords,
		"kafka_buffered_produce_bytes":   (*kgo.Client).BufferedProduceBytes,
	} {
		reg.MustRegister(prometheus.NewGaugeFunc(prometheus.GaugeOpts(opts(name)), func() (sum float64) {
			for _, cl := range c.clients() {
				sum += float64(buffered(cl))
			}
			return sum
		}))
	}
	return c
}

var requestBuckets = []float64{0.001, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 5, 10, 30}

func (c *clients) clients() []*kgo.Client {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Collect(maps.Keys(c.live))
}

var (
	_ kgo.HookNewClient     = (*clients)(nil)
	_ kgo.HookClientClosed  = (*clients)(nil)
	_ kgo.HookBrokerConnect = (*clients)(nil)
	_ kgo.HookBrokerRead    = (*clients)(nil)

	_ kgo.HookProduceBatchWritten = (*clients)(nil)
)

// OnBrokerConnect implements kgo.HookBrokerConnect.
func (c *clients) OnBrokerConnect(meta kgo.BrokerMetadata, took time.Duration, conn net.Conn, err error) {
	defer c.monitor.caught.Catch("metrics")
	c.Metrics.OnBrokerConnect(meta, took, conn, err)
	if err != nil && !errors.Is(err, context.Canceled) {
		c.monitor.BrokerFailed(err)
	}
}

// OnBrokerRead implements kgo.HookBrokerRead.
func (c *clients) OnBrokerRead(
	meta kgo.BrokerMetadata, key int16, size int, waited, took time.Duration, err error,
) {
	defer c.monitor.caught.Catch("metrics")
	c.Metrics.OnBrokerRead(meta, key, size, waited, took, err)
	if err == nil {
		c.monitor.BrokerAnswered()
	}
}

// OnProduceBatchWritten implements kgo.HookProduceBatchWritten.
func (c *clients) OnProduceBatchWritten(
	meta kgo.BrokerMetadata, topic string, p int32, batch kgo.ProduceBatchMetrics,
) {
	c.Metrics.OnProduceBatchWritten(meta, topic, p, batch)
	c.monitor.Wrote(topic, p, batch.NumRecords)
}

// OnNewClient implements kgo.HookNewClient.
func (c *clients) OnNewClient(cl *kgo.Client) {
	c.once.Do(func() { c.Metrics.OnNewClient(cl) })
	c.mu.Lock()
	defer c.mu.Unlock()
	c.live[cl] = struct{}{}
}

// OnClientClosed implements kgo.HookClientClosed.
func (c *clients) OnClientClosed(cl *kgo.Client) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.live, cl)
}

// vectors registers everything but single metrics, which are the gauges that ask the first client.
type vectors struct{ prometheus.Registerer }

// MustRegister is what kprom calls.
func (v *vectors) MustRegister(cs ...prometheus.Collector) {
	for _, c := range cs {
		if _, single := c.(prometheus.Metric); !single {
			v.Registerer.MustRegister(c)
		}
	}
}
