package check

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/kversion"

	"blobfeed/bridge"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
	"blobfeed/internal/topics"
	"blobfeed/offsets"
)

// askTimeout bounds each request to the brokers.
const askTimeout = 15 * time.Second

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
	ctx, cancel := context.WithTimeoutCause(ctx, askTimeout, errors.New("no answer in time"))
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
	return cmp.Or(ck.client.Advice(err), "see the error: address, network, or another kind of port "+
		"(BRIDGE_KAFKA_BROKERS, BRIDGE_KAFKA_TLS_ENABLED, BRIDGE_KAFKA_SASL_MECHANISM)")
}

func (ck *checker) unreached(what string, err error) {
	text, do := plain.SplitRemedy(err) // credentials have one of their own
	ck.Add("kafka", Failed, what+": "+text, cmp.Or(do, ck.advice(err)))
}

// reach asks every broker that the settings name, and every one that those name in turn: brokers send clients to what
// they advertise, and that address may be unreachable from here.
func (ck *checker) reach(ctx context.Context) bool {
	var versions *kmsg.ApiVersionsResponse
	for i, seed := range ck.cl.SeedBrokers() {
		resp, err := ask[*kmsg.ApiVersionsResponse](ctx, seed, versionsRequest())
		if err != nil {
			ck.unreached(ck.client.Brokers[i], err)
			continue
		}
		versions = resp
	}
	if versions == nil {
		return false
	}
	ck.txnVersion = transactionVersion(versions)
	none := &kmsg.MetadataRequest{Version: 0, Topics: []kmsg.MetadataRequestTopic{}}
	m, err := ask[*kmsg.MetadataResponse](ctx, ck.cl, none)
	if err != nil {
		ck.unreached("asking for the brokers", err)
		return false
	}
	for _, b := range m.Brokers {
		if _, err := ask[*kmsg.ApiVersionsResponse](ctx, ck.cl.Broker(int(b.NodeID)), versionsRequest()); err != nil {
			ck.Add("kafka", Failed, fmt.Sprintf("broker %d, which advertises %s:%d: %v", b.NodeID, b.Host, b.Port, err),
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
	have := ck.bridge.Session
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
