package main

import (
	"crypto/tls"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kfake"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
	"github.com/twmb/franz-go/pkg/sr/srfake"

	"blobfeed/integration/pki"
	"blobfeed/internal/testing/fakebroker"
)

// broker returns a mistake in the settings for a broker, or in what it permits.
func broker(settings string, args []string, opts ...kfake.Opt) mistake {
	return func(t *testing.T) []string {
		t.Helper()
		return onBroker(t, fakebroker.New(t, opts...), settings, args)
	}
}

func onBroker(t *testing.T, c *kfake.Cluster, settings string, args []string) []string {
	t.Helper()
	return set("NAME=b TOPIC="+changes+" TOPIC_REPLICATION=1 KAFKA_BROKERS="+
		strings.Join(c.ListenAddrs(), ",")+" "+settings, args...)(t)
}

// answers is a mistake of the brokers: each request of a kind has an error.
func answers(settings string, key kmsg.Key, code *kerr.Error, opts ...kfake.Opt) mistake {
	return func(t *testing.T) []string {
		t.Helper()
		c := fakebroker.New(t, opts...)
		c.ControlKey(int16(key), func(req kmsg.Request) (kmsg.Response, error, bool) {
			c.KeepControl()
			resp := req.ResponseKind()
			switch resp := resp.(type) {
			case *kmsg.SASLHandshakeResponse:
				resp.ErrorCode = code.Code
			case *kmsg.SASLAuthenticateResponse:
				resp.ErrorCode = code.Code
			case *kmsg.EndTxnResponse:
				resp.ErrorCode = code.Code
			case *kmsg.ProduceResponse:
				for _, rt := range req.(*kmsg.ProduceRequest).Topics {
					to := kmsg.NewProduceResponseTopic()
					to.Topic, to.TopicID = rt.Topic, rt.TopicID
					for _, p := range rt.Partitions {
						answer := kmsg.NewProduceResponseTopicPartition()
						answer.Partition, answer.ErrorCode = p.Partition, code.Code
						to.Partitions = append(to.Partitions, answer)
					}
					resp.Topics = append(resp.Topics, to)
				}
			}
			return resp, nil, true
		})
		return onBroker(t, c, settings, runOnce)
	}
}

// permitted is a user that may do only some things.
func permitted(resources ...kmsg.ACLResourceType) mistake {
	acls := []kfake.ACL{{Resource: kmsg.ACLResourceTypeCluster, Name: "kafka-cluster",
		Pattern: kmsg.ACLResourcePatternTypeLiteral, Operation: kmsg.ACLOperationAll, Allow: true}}
	for _, r := range resources {
		acls = append(acls, kfake.ACL{Resource: r, Name: "*", Pattern: kmsg.ACLResourcePatternTypeLiteral,
			Operation: kmsg.ACLOperationAll, Allow: true})
	}
	return broker(sasl, runOnce, kfake.EnableSASL(), kfake.EnableACLs(), kfake.User("PLAIN", "user", "secret", acls...))
}

const sasl = "KAFKA_SASL_MECHANISM=PLAIN KAFKA_SASL_USERNAME=user KAFKA_SASL_PASSWORD=secret"

// encrypted returns a broker whose certificate no system trusts.
func encrypted(t *testing.T) *kfake.Cluster {
	t.Helper()
	a, err := pki.New("authority")
	if err != nil {
		t.Fatal(err)
	}
	pair, err := a.Issue("127.0.0.1", time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := tls.X509KeyPair(pair.Cert, pair.Key)
	if err != nil {
		t.Fatal(err)
	}
	return fakebroker.New(t, kfake.TLS(&tls.Config{Certificates: []tls.Certificate{cert}}))
}

// closing is a port that closes a connection whose first bytes it does not understand, as Kafka's do.
func closing(t *testing.T) []string {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	go func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			_, _ = c.Read(make([]byte, 4))
			_ = c.Close()
		}
	}()
	return set("KAFKA_TLS_ENABLED=true KAFKA_BROKERS="+l.Addr().String(), "check")(t)
}

var ofKafka = map[string]mistake{
	"start the brokers, or set BRIDGE_KAFKA_BROKERS to their addresses": set("", "check"),
	"the brokers speak TLS on this port": func(t *testing.T) []string {
		return onBroker(t, encrypted(t), "", []string{"check"})
	},
	"name the authority that signed the brokers' certificates": func(t *testing.T) []string {
		return onBroker(t, encrypted(t), "KAFKA_TLS_ENABLED=true", []string{"check"})
	},
	"the port may not speak TLS": closing,
	"the brokers want credentials on this port": broker("", []string{"check"}, kfake.EnableSASL(),
		kfake.Superuser("PLAIN", "user", "secret")),
	"SASL_AUTHENTICATION_FAILED": answers(sasl, kmsg.SASLAuthenticate, kerr.SaslAuthenticationFailed,
		kfake.EnableSASL()),
	"the port takes no credentials": answers(sasl, kmsg.SASLHandshake, kerr.IllegalSaslState),
	"UNSUPPORTED_SASL_MECHANISM": answers(sasl, kmsg.SASLHandshake, kerr.UnsupportedSaslMechanism,
		kfake.EnableSASL()),
	"TOPIC_AUTHORIZATION_FAILED":            permitted(kmsg.ACLResourceTypeGroup, kmsg.ACLResourceTypeTransactionalId),
	"GROUP_AUTHORIZATION_FAILED":            permitted(kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeTransactionalId),
	"TRANSACTIONAL_ID_AUTHORIZATION_FAILED": permitted(kmsg.ACLResourceTypeTopic, kmsg.ACLResourceTypeGroup),
	"INVALID_REPLICATION_FACTOR":            broker("TOPIC_REPLICATION=3", runOnce),
	"takes no records: partition … has … in sync": func(t *testing.T) []string {
		args := answers("", kmsg.Produce, kerr.NotEnoughReplicas)(t)
		cl, err := kgo.NewClient(kgo.SeedBrokers(environ(t)["BRIDGE_KAFKA_BROKERS"]))
		if err != nil {
			t.Fatal(err)
		}
		defer cl.Close()
		least := "2"
		settings := map[string]*string{"min.insync.replicas": &least}
		if _, err := kadm.NewClient(cl).CreateTopic(t.Context(), 4, 1, settings, changes); err != nil {
			t.Fatal(err)
		}
		return args
	},
	"has had work for … without a commit": answers("DEBUG=watchdog_timeout=1s,report_interval=1s",
		kmsg.Produce, kerr.NotEnoughReplicas),
	"INVALID_TXN_STATE": answers("", kmsg.EndTxn, kerr.InvalidTxnState),
	"getting the id of the schema of …": func(t *testing.T) []string {
		r := srfake.New(srfake.WithAuth("another"))
		t.Cleanup(r.Close)
		return onBroker(t, fakebroker.New(t), "FORMAT=avro REGISTRY_URL="+r.URL(), runOnce)
	},
	"start the schema registry, or set BRIDGE_REGISTRY_URL to its address": broker("FORMAT=avro NETWORK_TIMEOUT=1s "+
		"REGISTRY_URL=http://127.0.0.1:1", runOnce),
}
