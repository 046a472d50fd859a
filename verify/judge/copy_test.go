package judge

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/envelope"
	"blobfeed/offsets"
)

// copied is what a broker held, in memory: a fault is put into it in no time, and again and again.
type copied struct {
	topics map[string]*tape
	states map[string]*offsets.State
}

// tape is the records of a topic, by partition.
type tape struct {
	records   map[int32][]*kgo.Record
	from, to  map[int32]int64
	compacted bool
}

// copyAll reads all topics of a broker, and the states that are in some of them.
func copyAll(t *testing.T, cl *kgo.Client) *copied {
	t.Helper()
	ctx, from := t.Context(), brokers(cl.Opts())
	c := &copied{topics: map[string]*tape{}, states: map[string]*offsets.State{}}
	topics, err := kadm.NewClient(cl).ListTopics(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range topics.Names() {
		if strings.HasSuffix(name, ".offsets") {
			if c.states[name], err = from.state(ctx, name); err != nil {
				t.Fatal(err)
			}
			continue
		}
		have, err := from.open(ctx, name)
		if err != nil {
			t.Fatal(err)
		}
		x := &tape{records: map[int32][]*kgo.Record{}, from: have.from, to: have.to, compacted: have.compacted}
		err = from.read(ctx, name, have.from, have.to, func(r *kgo.Record) bool {
			x.records[r.Partition] = append(x.records[r.Partition], r)
			return true
		})
		if err != nil {
			t.Fatal(err)
		}
		c.topics[name] = x
	}
	return c
}

// clone returns a copy in which records can be moved and replaced.
func (c *copied) clone() *copied {
	d := &copied{map[string]*tape{}, c.states}
	for name, x := range c.topics {
		y := *x
		y.records, y.from, y.to = map[int32][]*kgo.Record{}, maps.Clone(x.from), maps.Clone(x.to)
		for p, rs := range x.records {
			y.records[p] = slices.Clone(rs)
		}
		d.topics[name] = &y
	}
	return d
}

func (c *copied) open(_ context.Context, name string) (*topic, error) {
	x := c.topics[name]
	if x == nil {
		return nil, fmt.Errorf("opening topic %s: %w", name, errNoTopic)
	}
	return &topic{
		name:      name,
		in:        c,
		from:      x.from,
		to:        maps.Clone(x.to),
		compacted: x.compacted,
		markers:   map[int32]envelope.Timestamp{},
	}, nil
}

func (c *copied) state(_ context.Context, topic string) (*offsets.State, error) {
	return c.states[topic], nil
}

// claims reads them off the states, as offsets.Claims does.
func (c *copied) claims(_ context.Context, own string) (claims []offsets.Claim, err error) {
	for topic, s := range c.states {
		if name := strings.TrimSuffix(topic, ".offsets"); name != own && s != nil && s.Frontier != nil {
			claims = append(
				claims,
				offsets.Claim{
					Name:     name,
					Feed:     s.Frontier.Feed,
					Settings: s.Frontier.Settings,
					Topics:   slices.Sorted(maps.Keys(s.Frontier.Topics)),
				},
			)
		}
	}
	return claims, nil
}

func (c *copied) ends(_ context.Context, topic string) (map[int32]int64, error) {
	return maps.Clone(c.topics[topic].to), nil
}

func (c *copied) read(_ context.Context, topic string, from, to map[int32]int64, show func(*kgo.Record) bool) error {
	for p, end := range to {
		for _, r := range c.topics[topic].records[p] {
			if r.Offset >= from[p] && (r.Offset >= end || !show(r)) {
				break
			}
		}
	}
	return nil
}

// add puts a record behind all others of its partition.
func (x *tape) add(r *kgo.Record) {
	r.Offset = x.to[r.Partition]
	x.to[r.Partition]++
	x.records[r.Partition] = append(x.records[r.Partition], r)
}
