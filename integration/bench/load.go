package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"time"

	"blobfeed/integration/chaos"
	"blobfeed/integration/stack"
	"blobfeed/internal/testing/feedsim"
	"blobfeed/internal/testing/feedsim/account"
)

// load is a feed, and how the program delivers it.
type load struct {
	shards, segments, each int // events of a segment
	containers             int
	template               bool // a topic for each container
	partitions             int  // of a topic
	leases, instances      int
	delay                  time.Duration // of an answer of the storage; negative: the feed is a directory
	away                   bool          // the brokers are brokersAway
	atLeastOnce            bool
}

// brokersAway is how far brokers are that are not on this machine.
const brokersAway = 5 * time.Millisecond

func (l load) events() int { return l.segments * l.each }

func (l load) spec() feedsim.Spec {
	spec := feedsim.Spec{Seed: 1, Shards: l.shards, Segments: l.segments, EventsPerSegment: l.each, Blobs: 50_000,
		Start: time.Date(2022, 1, 1, 0, 0, 0, 0, time.UTC)} // brokers reject records from the future
	for i := range l.containers {
		spec.Containers = append(spec.Containers, fmt.Sprintf("container-%04d", i))
	}
	return spec
}

// sameFeed reports whether both read the same feed.
func (l load) sameFeed(other load) bool {
	return l.shards == other.shards && l.segments == other.segments && l.each == other.each &&
		l.containers == other.containers && l.delay == other.delay
}

// settings returns those of a bridge.
func (l load) settings(name string) []string {
	set := []string{fmt.Sprint("BRIDGE_TOPIC_PARTITIONS=", l.partitions),
		fmt.Sprint("BRIDGE_OFFSETS_LEASES=", l.leases)}
	if l.atLeastOnce {
		set = append(set, "BRIDGE_DELIVERY=at_least_once")
	}
	if l.template {
		set = append(set, "BRIDGE_TOPIC="+name+"-{container}", fmt.Sprint("BRIDGE_TOPIC_LIMIT=", l.containers))
	}
	return set
}

// cluster is a stack, and the ways to it.
type cluster struct {
	*stack.Stack
	distant []string // its brokers, brokersAway
	links   []*chaos.Link
}

// startCluster starts brokers.
func startCluster(ctx context.Context, brokers int) (*cluster, error) {
	s, err := stack.Start(ctx, stack.Options{Brokers: max(1, brokers), Links: 1, Throughput: true}, nil)
	if err != nil {
		return nil, err
	}
	c := &cluster{Stack: s}
	for _, to := range s.Links[0] {
		l, err := chaos.NewLink(to.Address, to.Target)
		if err != nil {
			return nil, errors.Join(err, c.Close())
		}
		l.Delay(brokersAway)
		c.links, c.distant = append(c.links, l), append(c.distant, to.Address)
	}
	return c, nil
}

func (c *cluster) Close() (err error) {
	for _, l := range c.links {
		err = errors.Join(err, l.Close())
	}
	return errors.Join(err, c.Stack.Close())
}

// brokers returns the addresses for the program.
func (c *cluster) brokers(l load) []string {
	if l.away {
		return c.distant
	}
	return c.KafkaBrokers
}

// endpoint serves the feed of a load from memory, in the dialect of the blob service.
type endpoint struct{ server *httptest.Server }

func serve(ctx context.Context, l load) (*endpoint, error) {
	files := account.NewFiles()
	if err := feedsim.Write(ctx, files, l.spec(), nil); err != nil {
		return nil, err
	}
	service := &account.Server{Account: account.New(nil), Feed: files}
	return &endpoint{httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		time.Sleep(l.delay)
		service.ServeHTTP(w, r)
	}))}, nil
}

func (e *endpoint) url() string { return e.server.URL + "/" + stack.AzuriteAccount }

// credentials are settings.
func (e *endpoint) credentials() []string {
	return []string{"BRIDGE_SOURCE_AUTH=shared_key", "BRIDGE_SOURCE_ACCOUNT=" + stack.AzuriteAccount,
		"BRIDGE_SOURCE_KEY=" + stack.AzuriteKey}
}

func (e *endpoint) close() { e.server.Close() }
