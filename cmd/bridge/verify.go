package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"blobfeed/bridge"
	"blobfeed/config"
	"blobfeed/envelope"
	"blobfeed/verify"
)

// brokenError says that a topic is not what was promised.
type brokenError struct{ checks []string }

func (e *brokenError) Error() string { return "verification failed: " + strings.Join(e.checks, ", ") }

const verifyHelp = `
Reads the topic, or all topics of a template, from the beginning to the end it has now, read_committed, and tells which of the
bridge's promises hold. The settings are those that the topic was written with; without --feed, BRIDGE_SOURCE_URL is not needed.
A replay's topic is judged by what the replay recorded.
Exit codes: 0 all that apply hold, 4 one is broken, 1 one could not be checked (also: the topic is empty), 2 usage or settings.
`

func verifyVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	fs := flags("verify", "[--topic T] [--feed] [--until-resolved TIME] [--bounded] [--grown-from N,…] [--output text|json]", stderr,
		func(w io.Writer) { fmt.Fprint(w, verifyHelp) })
	var v verification
	fs.StringVar(&v.topic, "topic", "", "the topic (default: BRIDGE_TOPIC; of a template, each topic that the bridge has written to)")
	fs.BoolVar(&v.feed, "feed", false, "read the feed, too: nothing is lost, changed or made up")
	until := fs.String("until-resolved", "",
		"stop at the first marker at or above this time (or text of an \"updated\"), which every partition must have")
	fs.BoolVar(&v.bounded, "bounded", false, "run only what needs no memory for events or keys: for very long topics")
	grown := fs.String("grown-from", "", "how many partitions the topic had before some were added; several counts separated by commas")
	output := fs.String("output", "text", "text, or json: a document for each topic")
	if err := parse(fs, args); err != nil {
		return err
	}
	asJSON, err := wantsJSON(*output)
	if err != nil {
		return err
	}
	if v.bounded && v.feed {
		return &usageError{errors.New("--feed keeps some 40 bytes an event: it can't be --bounded")}
	}
	if v.grownFrom, err = counts(*grown); err != nil {
		return &usageError{fmt.Errorf("--grown-from: %w", err)}
	}
	if err := v.settings(); err != nil {
		return err
	}
	if *until != "" {
		if v.until, err = bridge.ParseTime(*until); err != nil {
			return &usageError{fmt.Errorf("--until-resolved: %w", err)}
		}
		if v.Markers == envelope.MarkersOff {
			return &usageError{fmt.Errorf("--until-resolved: the topic has no markers (%s_RESOLVED_TO=%s)", config.Prefix, v.Markers)}
		}
	}
	ctx, cancel := signal.NotifyContext(ctx, os.Interrupt, syscall.SIGTERM)
	defer cancel()
	rs, err := v.run(ctx)
	if err != nil {
		return err
	}
	for _, r := range rs {
		if err := r.write(stdout, asJSON); err != nil {
			return err
		}
	}
	return verdict(rs)
}

// counts parses numbers of partitions.
func counts(text string) (all []int, err error) {
	if text == "" {
		return nil, nil
	}
	for part := range strings.SplitSeq(text, ",") {
		n, err := strconv.Atoi(strings.TrimSpace(part))
		if err != nil || n < 1 {
			return nil, fmt.Errorf("%q is not a number of partitions", part)
		}
		all = append(all, n)
	}
	slices.Sort(all)
	return all, nil
}

// verification is one run of the verb.
type verification struct {
	bridge.Options
	cluster       cluster
	config        *config.Config
	record        envelope.Options
	encoderOf     func(context.Context, envelope.Options) (*envelope.Encoder, error)
	avro          *verify.Avro // nil: no record is in Avro
	topic         string       // "": all that the bridge has written to
	feed, bounded bool
	grownFrom     []int              // rising; none: it has the partitions it began with
	until         envelope.Timestamp // zero: the end
	sharing       *sharing           // nil: no other bridge may write to the topics
}

// settings reads the environment.
func (v *verification) settings() (err error) {
	load := config.LoadKafka
	if v.feed {
		load = func() (*config.Config, error) { return config.Load(true) }
	}
	if v.config, err = load(); err != nil {
		return &usageError{fmt.Errorf("settings:\n%w", err)}
	}
	v.config.RegistryAutoRegister = false // a reader writes nothing
	if v.feed {
		v.Options, err = options(v.config, observe{})
	} else {
		v.Options, err = optionsFor(v.config, nil, "", v.config.SourceAccount, observe{})
	}
	if err != nil {
		return &usageError{err}
	}
	v.record, _ = v.config.Record() // options has reported what is wrong with it
	v.encoderOf = func(_ context.Context, o envelope.Options) (*envelope.Encoder, error) { return envelope.NewEncoder(o) }
	if v.config.Registry() {
		if len(v.config.RegistryURL) == 0 {
			return &usageError{errors.New("BRIDGE_REGISTRY_URL: required for Avro: set it to the registry that the topic was written with")}
		}
		registry, err := registry(v.config, nil)
		if err != nil {
			return &usageError{err}
		}
		v.encoderOf = func(ctx context.Context, o envelope.Options) (*envelope.Encoder, error) {
			o.Register = func(s envelope.Subject) (int, error) { return registry.ID(ctx, s.Name, s.Schema) }
			return envelope.NewEncoder(o)
		}
		v.avro = verify.NewAvro(func(id int) (string, error) { return registry.Schema(context.Background(), id) })
	}
	v.cluster = brokers(v.Client)
	return nil
}

// subject is a topic that is judged.
type subject struct {
	*topic
	encoder *envelope.Encoder // with --feed
	checks  *checks
	feed    *comparison // nil: without --feed
	fresh   bool        // the bridge met it in the segment at which it works, so no marker was due
}

// run reads everything in an order in which nothing that goes on meanwhile looks like a fault: the state before the ends of
// the topics, so that what it covers is in the topics; and those before the feed, so that what is in a topic is in the feed.
func (v *verification) run(ctx context.Context) (reports []*report, err error) {
	state, err := v.state(ctx)
	if err != nil {
		return nil, err
	}
	if v.sharing, err = v.share(ctx, state); err != nil {
		return nil, err
	}
	subjects, err := v.subjects(ctx, state)
	for _, s := range subjects {
		defer s.close()
	}
	if err != nil {
		return nil, err
	}
	var pass *feedPass
	if v.feed {
		pass = &feedPass{verification: v}
		if err := v.walk(ctx, pass, subjects, state); err != nil {
			return nil, err
		}
	}
	for _, s := range subjects {
		r, err := v.judge(ctx, s, pass, state)
		if err == nil && s.feed != nil && len(s.feed.odd) >= minOdd {
			r, err = v.explain(ctx, s, state, r)
		}
		if err != nil {
			return nil, err
		}
		reports = append(reports, r)
	}
	if pass != nil {
		reports = append(reports, pass.strayed()...)
	}
	if v.avro != nil && v.avro.Err() != nil {
		return nil, v.avro.Err()
	}
	return reports, nil
}

// subjects opens the topics.
func (v *verification) subjects(ctx context.Context, state *progressState) (all []*subject, err error) {
	names, fresh := []string{v.topic}, map[string]bool{}
	if v.topic == "" {
		if names, fresh = state.topics(); len(names) == 0 {
			return nil, &usageError{fmt.Errorf("%s_TOPIC=%s is many topics, and %s.offsets knows none: name one with --topic",
				config.Prefix, v.config.Topic, v.Name)}
		}
	}
	for _, name := range names {
		s := &subject{fresh: fresh[name]}
		var markers *topic
		if v.Markers == envelope.MarkersTopic { // before the records of which they speak
			if markers, err = v.open(ctx, name+".resolved"); err != nil {
				return all, err
			}
		}
		if s.topic, err = v.open(ctx, name); err != nil {
			if markers != nil {
				markers.close()
			}
			return all, err
		}
		all = append(all, s)
		if markers != nil {
			if err := s.putBeside(ctx, markers); err != nil {
				return all, err
			}
		}
		if n := len(v.grownFrom); n > 0 && v.grownFrom[n-1] > len(s.to) {
			return all, &usageError{fmt.Errorf("--grown-from %d: %s has %d partitions now", v.grownFrom[n-1], name, len(s.to))}
		}
		if v.feed {
			if s.encoder, err = v.Encoder(ctx, name); err != nil {
				return all, v.unread(err, name)
			}
		}
	}
	return all, nil
}

func (v *verification) open(ctx context.Context, name string) (*topic, error) {
	t, err := v.cluster.open(ctx, name)
	if err == nil {
		t.avro = v.avro
		if v.sharing != nil {
			t.portion = v.sharing.portion(strings.TrimSuffix(name, ".resolved"))
		}
	}
	return t, err
}

// judge reads a topic.
func (v *verification) judge(ctx context.Context, s *subject, pass *feedPass, state *progressState) (*report, error) {
	r := &report{Topic: s.name, Partitions: len(s.to)}
	if s.empty() && (s.beside == nil || s.beside.empty()) && (s.feed == nil || s.feed.Required() == 0) {
		r.Problem = fmt.Sprintf("topic %s is empty: nothing was checked", s.name)
		return r, nil
	}
	s.checks = v.checks(s)
	if s.feed != nil {
		s.checks.replay(s.feed)
		s.checks.expect(s.feed)
	}
	group := verify.All(s.checks.validators()...)
	reached := map[int32]bool{}
	note := func(rec verify.Record) (more bool) {
		if s.checks.seen != nil {
			s.checks.first = s.checks.seen.First(&rec)
		}
		group.Note(rec)
		if at, ok := markerTime(&rec); ok && v.until != (envelope.Timestamp{}) && at.Compare(v.until) >= 0 {
			reached[rec.Partition] = true
			return false
		}
		return true
	}
	if err := s.scan(ctx, note); err != nil {
		return nil, err
	}
	if v.until == (envelope.Timestamp{}) && s.checks.resolved != nil {
		if err := s.catchUp(ctx, note); err != nil {
			return nil, err
		}
	}
	for p := range int32(len(s.to)) {
		if v.until != (envelope.Timestamp{}) && !reached[p] {
			return nil, fmt.Errorf("partition %d of %s has no marker at or above %s yet: nothing can be said up to there", p, s.name, v.until)
		}
	}
	if s.checks.resolved != nil {
		s.emptied()
		if pass != nil {
			pass.due(s, v.until)
		}
		if err := v.bounds(ctx, s, state); err != nil {
			return nil, err
		}
	}
	r.fill(group.Summary(), s, pass, state)
	if s.portion != nil {
		return r, r.share(ctx, s.topic)
	}
	return r, nil
}
