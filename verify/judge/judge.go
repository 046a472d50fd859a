package judge

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/setup"
	"blobfeed/verify"
)

// Options say what to judge, by the settings with which the topics were written.
type Options struct {
	bridge.Options                  // without Feed and FeedID, the feed is not read
	Record         envelope.Options // of records, without topic and account
	Account        string           // storage account, where the settings name one
	// Schema returns a schema of the registry. Nil: no record is in Avro.
	Schema func(ctx context.Context, id int) (string, error)

	Topic    string // "": all that the bridge has written to
	ReadFeed bool   // compare the topics with the feed
	// ReadAccount compares the topics with the blobs of the account. Wait is how long the feed may take to explain a
	// difference.
	ReadAccount bool
	Wait        time.Duration

	Bounded bool               // use only validators that keep nothing for each event or key
	Until   envelope.Timestamp // judge up to the first marker at or above it; zero: to the end

	Reads *Reads // what is read so far; nil: nobody asks
}

// Reads counts while a verification works.
type Reads struct{ Events, Records atomic.Int64 }

// verification is one run.
type verification struct {
	Options
	cluster cluster
	avro    *verify.Avro   // nil: no record is in Avro
	writer  *writer        // the judged bridge; nil: no other one may write to the topics
	limits  limits         // of --account
	state   *progressState // as it was before the topics were opened; nil: there is none
	since   *since         // of --follow: how far former rounds came; nil: this is the only round
}

func newVerification(o Options) *verification {
	v := &verification{Options: o, cluster: brokers(o.Kafka.Client), limits: censusLimits}
	if o.Schema != nil {
		v.avro = verify.NewAvro(func(id int) (string, error) { return o.Schema(context.Background(), id) })
	}
	return v
}

// limits bound what a census keeps in memory.
type limits struct {
	keys        int           // of the topics, at a time, with about 40 bytes each, or laneKeys times that
	differences int           // that differ at first and are looked at again, with some hundred bytes each
	poll        time.Duration // how often those are looked at
}

var censusLimits = limits{keys: 8 << 20, differences: 256 << 10, poll: 5 * time.Second}

// Run judges the topics. The error says why it can't; what is wrong with a topic is in its report.
func Run(ctx context.Context, o Options) ([]*Report, error) {
	return newVerification(o).run(ctx)
}

func (v *verification) run(ctx context.Context) (reports []*Report, err error) {
	named := v.Topic != ""
	v.state, err = v.readState(ctx)
	switch {
	case err != nil:
	case v.since != nil:
		err = v.since.begin(ctx, v)
	case v.state == nil:
		err = v.stateless(ctx, named)
	}
	if err != nil {
		return nil, err
	}
	if v.writer, err = v.Options.writer(v.state.feed()); err != nil {
		return nil, err
	}
	judged, err := v.openJudged(ctx)
	if err != nil {
		return nil, err
	}
	var table *census
	if v.ReadAccount {
		if table, err = v.newCensus(judged); err != nil {
			return nil, err
		}
	}
	var pass *feedScan
	if v.ReadFeed {
		pass = &feedScan{v: v}
		if err := v.walk(ctx, pass, judged); err != nil {
			return nil, err
		}
	}
	for _, s := range judged {
		if s.pass = pass; pass != nil {
			s.feed = pass.of[s.name]
		}
		r, err := v.judge(ctx, s)
		if err == nil && pass != nil {
			err = v.inquire(ctx, s, r)
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	if pass != nil {
		reports = append(reports, v.state.missing("replay", replayPromise, "the feed has", "event", pass.stray)...)
	}
	if table != nil {
		more, err := table.take(ctx, reports)
		if err != nil {
			return nil, fmt.Errorf("comparing the account: %w", err)
		}
		reports = append(reports, more...)
	}
	if v.avro != nil && v.avro.Err() != nil {
		return nil, v.avro.Err()
	}
	return reports, nil
}

// judge reads a topic.
func (v *verification) judge(ctx context.Context, s *judgedTopic) (*Report, error) {
	r := &Report{Topic: s.name, Partitions: len(s.to)}
	reached := map[int32]int64{} // where each partition was left, at the marker of --until-resolved or of the round
	if v.since != nil {
		v.since.ends[s.name] = roundEnd{reached, s.growth.now, v.since.marker}
	}
	if s.empty() && (s.markerTopic == nil || s.markerTopic.empty()) && (s.feed == nil || s.feed.Required == 0) {
		r.Problem = fmt.Sprintf("topic %s is empty: nothing is checked", s.name)
		return r, nil
	}
	s.checks = v.checks(s)
	s.knowScan()
	if s.feed != nil {
		s.expect()
	}
	every, firsts := s.checks.validators()
	others, other := int64(0), "" // markers of other feeds
	note := func(rec verify.Record) (more bool) {
		if v.Until != (envelope.Timestamp{}) && int(rec.Partition) >= s.growth.now {
			return false // keys use it behind a later marker
		}
		if v.Reads != nil {
			v.Reads.Records.Add(1)
		}
		if s.checks.seen != nil && s.checks.seen.First(&rec) {
			firsts.Note(rec)
		}
		if every.Note(rec); rec.Key == nil {
			if by := string(rec.Header("feed")); by != "" && by != v.Options.Feed.ID && v.ReadFeed && v.state == nil {
				if others++; others == 1 {
					other = fmt.Sprintf("partition %d, offset %d, of feed %s", rec.Partition, rec.Offset, by)
				}
			}
			r.Markers++
		} else {
			r.Records++
		}
		if at, ok := markerTime(&rec); ok && v.Until != (envelope.Timestamp{}) && at.Compare(v.Until) >= 0 {
			reached[rec.Partition] = rec.Offset
			if _, upTo, ok := rec.UpTo(); ok {
				reached[rec.Partition] = upTo
			}
			return false
		}
		return true
	}
	if err := s.readAll(ctx, note); err != nil {
		return nil, err
	}
	if v.Until == (envelope.Timestamp{}) && s.checks.resolved != nil {
		if err := s.catchUp(ctx, note); err != nil {
			return nil, err
		}
	}
	for p := range int32(s.growth.now) {
		if _, there := reached[p]; v.Until != (envelope.Timestamp{}) && !there {
			return nil, fmt.Errorf("partition %d of %s has no marker at or above %s yet: "+
				"wait for it, or give an earlier time",
				p, s.name, v.Until)
		}
	}
	if s.checks.resolved != nil && s.pass != nil {
		s.due()
	}
	if err := s.look(ctx); err != nil {
		return nil, err
	}
	r.fill(s)
	r.noteSome(others, "marker", "%s of another feed than BRIDGE_SOURCE_URL; the first is on %s", other)
	if s.portion != nil {
		r.share(s.topic)
	}
	return r, nil
}

// Use fills in the settings that the topics were written with.
func (o *Options) Use(c *config.Config) (err error) {
	c.RegistryAutoRegister = false // a reader writes nothing
	if o.ReadFeed || o.ReadAccount {
		o.Options, err = setup.Options(c, setup.Observe{})
	} else {
		o.Options, err = setup.WithoutFeed(c)
	}
	if err != nil {
		return err
	}
	o.Record, _ = setup.Record(c) // Options has reported what is wrong with it
	o.Account = c.SourceAccount
	if !c.Registry() {
		return nil
	}
	if len(c.RegistryURL) == 0 {
		return errors.New("BRIDGE_REGISTRY_URL: required for Avro: " +
			"set it to the registry that the topic was written with")
	}
	registry, err := setup.Registry(c, setup.Observe{})
	if err != nil {
		return err
	}
	o.Schema = registry.Schema
	return nil
}
