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
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/verify"
)

// brokenError says that a topic is not what was promised.
type brokenError struct{ checks []string }

func (e *brokenError) Error() string { return "verification failed: " + strings.Join(e.checks, ", ") }

const verifyHelp = `
Reads the topic, or all topics of a template, from the beginning to the end it has now, read_committed, and says which
of the bridge's promises hold. The settings are those that the topic was written with. Without --feed, BRIDGE_SOURCE_URL
is not needed. A replay's topic is judged by what the replay recorded.
Exit codes: 0 all that apply hold, 4 one is broken, 1 one could not be checked (also: the topic is empty), 2 usage or
settings.
`

func verifyVerb(ctx context.Context, args []string, stdout, stderr io.Writer) error {
	usage := "[--topic T] [--feed] [--until-resolved TIME] [--bounded] [--grown-from N,…] [--output text|json]"
	fs := flags("verify", usage, stderr, func(w io.Writer) { fmt.Fprint(w, verifyHelp) })
	var v verification
	fs.StringVar(&v.topic, "topic", "",
		"the topic (default: BRIDGE_TOPIC; of a template, each topic that the bridge has written to)")
	fs.BoolVar(&v.feed, "feed", false, "read the feed, too: nothing is lost, changed or made up")
	until := fs.String("until-resolved", "",
		"stop at the first marker at or above this time (or text of an \"updated\"), which every partition must have")
	fs.BoolVar(&v.bounded, "bounded", false, "run only what needs no memory for events or keys: for very long topics")
	grown := fs.String("grown-from", "",
		"how many partitions the topic had before some were added; several counts separated by commas")
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
	load := loadKafka
	if v.feed {
		load = func() (*config.Config, error) { return loadConfig(true) }
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
	v.record, _ = recordOptions(v.config) // options has reported what is wrong with it
	v.encoderOf = func(_ context.Context, o envelope.Options) (*envelope.Encoder, error) {
		return envelope.NewEncoder(o)
	}
	if v.config.Registry() {
		if len(v.config.RegistryURL) == 0 {
			return &usageError{errors.New("BRIDGE_REGISTRY_URL: required for Avro: " +
				"set it to the registry that the topic was written with")}
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
