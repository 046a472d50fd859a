//go:build integration

package stack

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Azure/azure-sdk-for-go/sdk/azcore/streaming"
	"github.com/Azure/azure-sdk-for-go/sdk/storage/azblob"
	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

// One node, registry and Azurite: each does what the bridge needs of it.
func TestGet(t *testing.T) {
	t.Parallel()
	s, err := Get(t.Context(), t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	closeAtEnd(t, s)

	t.Run("kafka", func(t *testing.T) {
		topic := newTopic(t, s, 1)
		cl := client(t, s, kgo.TransactionalID(topic))
		transact(t, cl, topic, kgo.TryAbort, "aborted")
		transact(t, cl, topic, kgo.TryCommit, "committed")
		wantValues(t, s, topic, "committed")
	})
	t.Run("topics are not created by use", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
		defer cancel()
		cl := client(t, s, kgo.UnknownTopicRetries(1))
		if err := cl.ProduceSync(ctx, &kgo.Record{Topic: "never-created"}).FirstErr(); err == nil {
			t.Error("wrote to a topic that nobody created")
		}
	})
	t.Run("registry", func(t *testing.T) {
		subject := fmt.Sprintf("stack-%d-value", time.Now().UnixNano())
		body := request(t, "POST", s.SchemaRegistryURL+"/subjects/"+subject+"/versions",
			`{"schema":"{\"type\":\"string\"}"}`)
		if !strings.Contains(body, `"id"`) {
			t.Errorf("registering a schema: %s", body)
		}
		if body = request(t, "GET", s.SchemaRegistryURL+"/subjects", ""); !strings.Contains(body, subject) {
			t.Errorf("the subjects are %s, want %s among them", body, subject)
		}
	})
	t.Run("azurite", func(t *testing.T) {
		az, err := azblob.NewClientFromConnectionString(s.AzureConnectionString, nil)
		if err != nil {
			t.Fatal(err)
		}
		container := fmt.Sprintf("stack-%d", time.Now().UnixNano())
		if _, err := az.CreateContainer(t.Context(), container, nil); err != nil {
			t.Fatal(err)
		}
		blob := az.ServiceClient().NewContainerClient(container).NewAppendBlobClient("log/00/2026/01/01/0000/00000.avro")
		if _, err := blob.Create(t.Context(), nil); err != nil {
			t.Fatal(err)
		}
		for _, part := range []string{"Obj\x01", "rest"} {
			if _, err := blob.AppendBlock(t.Context(), streaming.NopCloser(bytes.NewReader([]byte(part))),
				nil); err != nil {
				t.Fatal(err)
			}
		}
		resp, err := blob.DownloadStream(t.Context(), nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		if got, err := io.ReadAll(resp.Body); err != nil || string(got) != "Obj\x01rest" {
			t.Errorf("read %q, %v", got, err)
		}
	})
}

// One node: what was committed is there after a crash, after a stop, and the node is frozen and thawed.
func TestBrokerRestart(t *testing.T) {
	t.Parallel()
	s := startStack(t, Options{Brokers: 1, KafkaProperties: map[string]string{"log.retention.hours": "1"}})
	topic := newTopic(t, s, 1)
	transact(t, client(t, s, kgo.TransactionalID(topic)), topic, kgo.TryCommit, "before")
	addr := s.KafkaBrokers[0]

	must(t, s.KillBroker(0))
	if err := s.KillBroker(0); err == nil {
		t.Error("killed a broker that was dead")
	}
	restart(t, s, 0)
	if s.KafkaBrokers[0] != addr {
		t.Errorf("the address is %s, was %s", s.KafkaBrokers[0], addr)
	}
	transact(t, client(t, s, kgo.TransactionalID(topic)), topic, kgo.TryCommit, "after the crash")
	wantValues(t, s, topic, "before", "after the crash")

	must(t, s.StopBroker(0))
	restart(t, s, 0)
	wantValues(t, s, topic, "before", "after the crash")
	if err := s.StartBroker(t.Context(), 0); err == nil {
		t.Error("started a broker that was running")
	}

	must(t, s.PauseBroker(0))
	if err := ping(t, s); err == nil {
		t.Error("a frozen broker answers")
	}
	must(t, s.ResumeBroker(0))
	if err := ping(t, s); err != nil {
		t.Errorf("a broker does not answer after it was frozen: %v", err)
	}
}

// Three nodes: everything is on all of them, and goes on without any one.
func TestCluster(t *testing.T) {
	t.Parallel()
	s := startStack(t, Options{Brokers: 3})
	topic := newTopic(t, s, 3)
	transact(t, client(t, s, kgo.TransactionalID(topic)), topic, kgo.TryCommit, "three")
	must(t, s.KillBroker(0))
	transact(t, client(t, s, kgo.TransactionalID(topic)), topic, kgo.TryCommit, "two")
	restart(t, s, 0)
	must(t, s.KillBroker(1))
	transact(t, client(t, s, kgo.TransactionalID(topic)), topic, kgo.TryCommit, "two others")
	wantValues(t, s, topic, "three", "two", "two others")
}

func startStack(t *testing.T, o Options) *Stack {
	t.Helper()
	began := time.Now()
	s, err := Start(t.Context(), o, t.Logf)
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("started %d nodes in %s", o.Brokers, time.Since(began).Round(time.Millisecond))
	closeAtEnd(t, s)
	return s
}

func closeAtEnd(t *testing.T, s *Stack) {
	t.Cleanup(func() {
		dir, began := s.dir, time.Now()
		if err := s.Close(); err != nil {
			t.Error(err)
		}
		t.Logf("closed in %s", time.Since(began).Round(time.Millisecond))
		if _, err := os.Stat(dir); dir != "" && err == nil {
			t.Errorf("%s is still there", dir)
		}
	})
}

func restart(t *testing.T, s *Stack, i int) {
	t.Helper()
	began := time.Now()
	must(t, s.StartBroker(t.Context(), i))
	t.Logf("broker %d was back after %s", i, time.Since(began).Round(time.Millisecond))
}

func client(t *testing.T, s *Stack, opts ...kgo.Opt) *kgo.Client {
	t.Helper()
	cl, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(s.KafkaBrokers...),
		kgo.MetadataMinAge(100 * time.Millisecond), kgo.FetchMaxWait(200 * time.Millisecond)}, opts...)...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(cl.Close)
	return cl
}

func newTopic(t *testing.T, s *Stack, replicas int16) string {
	t.Helper()
	topic := fmt.Sprintf("stack-%d", time.Now().UnixNano())
	if _, err := kadm.NewClient(client(t, s)).CreateTopic(t.Context(), 1, replicas, nil, topic); err != nil {
		t.Fatal(err)
	}
	return topic
}

func transact(t *testing.T, cl *kgo.Client, topic string, end kgo.TransactionEndTry, value string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	must(t, cl.BeginTransaction())
	must(t, cl.ProduceSync(ctx, &kgo.Record{Topic: topic, Value: []byte(value)}).FirstErr())
	must(t, cl.EndTransaction(ctx, end))
}

// wantValues reads what is committed, to the end.
func wantValues(t *testing.T, s *Stack, topic string, want ...string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cl := client(t, s, kgo.ConsumeTopics(topic), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()))
	var got []string
	for len(got) < len(want) {
		fetches := cl.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("read %q, want %q", got, want)
		}
		fetches.EachRecord(func(r *kgo.Record) { got = append(got, string(r.Value)) })
	}
	if strings.Join(got, ",") != strings.Join(want, ",") {
		t.Errorf("read %q, want %q", got, want)
	}
}

func ping(t *testing.T, s *Stack) error {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
	defer cancel()
	return client(t, s, kgo.RequestTimeoutOverhead(time.Second)).Ping(ctx)
}

func request(t *testing.T, method, url, body string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Content-Type", "application/vnd.schemaregistry.v1+json")
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	answer, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s %s: %s %s %v", method, url, resp.Status, answer, err)
	}
	return string(answer)
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
