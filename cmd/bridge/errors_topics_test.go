package main

import (
	"context"
	"io"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/internal/testing/fakebroker"
)

// created is a broker with a topic that has one setting, and the call that meets it.
func created(topic, setting, value string) mistake {
	return func(t *testing.T) []string {
		t.Helper()
		c := clusterFor(t)
		configs := map[string]*string{setting: &value}
		if _, err := fakebroker.Admin(t, c).CreateTopic(t.Context(), 4, 1, configs, topic); err != nil {
			t.Fatal(err)
		}
		return runOnce
	}
}

// afterwards is a broker with the whole real feed, a change of it, and the call that meets the change.
func afterwards(change func(*testing.T, *kadm.Client), args ...string) mistake {
	return func(t *testing.T) []string {
		t.Helper()
		change(t, fakebroker.Admin(t, deliveredReal(t)))
		return args
	}
}

// changed is a setting that differs at the next start.
func changed(name, value string) func(*testing.T, *kadm.Client) {
	return func(t *testing.T, _ *kadm.Client) { t.Helper(); setAll(t, map[string]string{name: value}) }
}

func deleteTopic(t *testing.T, a *kadm.Client) {
	t.Helper()
	if _, err := a.DeleteTopics(t.Context(), changes); err != nil {
		t.Fatal(err)
	}
}

var ofTopics = map[string]mistake{
	"set BRIDGE_TOPIC_CREATE=explicit, or create them …": broker("TOPIC_CREATE=off", runOnce),
	"its records are gone: …":                            afterwards(deleteTopic, runOnce...),
	"was deleted and created again": afterwards(func(t *testing.T, a *kadm.Client) {
		deleteTopic(t, a)
		if _, err := a.CreateTopic(t.Context(), 3, 1, nil, changes); err != nil {
			t.Fatal(err)
		}
	}, "check"),
	"the brokers would reject resolved markers":                    created(changes, "cleanup.policy", "compact"),
	"retention would delete progress":                              created("b.offsets", "cleanup.policy", "delete"),
	"and the smallest max.message.bytes of the topics in use is …": created(changes, "max.message.bytes", "600"),
	"belongs to bridge …":                                          afterwards(changed("NAME", "other"), runOnce...),
	"but … has progress on feed …": func(t *testing.T) []string {
		deliveredReal(t)
		copied(t, func(string) error { return nil })
		return runOnce
	},
	"and its state is made for …": afterwards(func(t *testing.T, a *kadm.Client) {
		if _, err := a.UpdatePartitions(t.Context(), 8, "b.offsets"); err != nil {
			t.Fatal(err)
		}
	}, runOnce...),
	"is in the future": afterwards(func(*testing.T, *kadm.Client) {}, "seek", "--to", "2100/01/01/0000", "--yes"),
	"the feed has no segment from": afterwards(func(*testing.T, *kadm.Client) {},
		"seek", "--to", "2021/01/01/0000", "--yes"),
	"has live members": afterwards(func(t *testing.T, _ *kadm.Client) {
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan int, 1)
		go func() { ended <- execute(ctx, environ(t), []string{"run"}, io.Discard, io.Discard) }()
		t.Cleanup(func() { stop(); <-ended })
		await(t, "an instance is a member", func() bool { return len(statusOf(t).Group.Members) > 0 })
	}, "reset", "--yes"),
	"no bridge of this name has run on these brokers": afterwards(changed("NAME", "another"), "status"),
	"run the newer bridge that wrote it": func(t *testing.T) []string {
		c := deliveredReal(t)
		r := &kgo.Record{Topic: "b.offsets", Key: []byte("frontier"), Value: []byte(`{"version":99}`)}
		cl := fakebroker.Client(t, c, kgo.RecordPartitioner(kgo.ManualPartitioner()))
		if err := cl.ProduceSync(t.Context(), r).FirstErr(); err != nil {
			t.Fatal(err)
		}
		return runOnce
	},
}
