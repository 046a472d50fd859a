package setup

import (
	"context"
	"encoding"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	"blobfeed/bridge"
	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
	"blobfeed/source"
	"blobfeed/source/ocf"
)

// Examined adds to what loading settings has returned the problems of the texts that only their users can parse:
// Examined(env.Load(true)).
func Examined(c *config.Config, err error) (*config.Config, error) {
	return c, errors.Join(err, errors.Join(parseProblems(c)...))
}

// LoadFleet reads the settings of all bridges of the settings file. It returns nil if the settings are those of one.
func LoadFleet(env config.Env) (*config.Fleet, error) { return env.LoadFleet(parseProblems) }

// RequireFleet is LoadFleet, but returns an error instead of nil.
func RequireFleet(env config.Env) (*config.Fleet, error) { return env.RequireFleet(parseProblems) }

// parseProblems returns what does not parse, and what does not fit together.
func parseProblems(c *config.Config) (problems []error) {
	failed := func(name string, err error) {
		if err != nil {
			problems = append(problems, c.Problem(name, "%w", err))
		}
	}
	_, err := history.ParseStart(c.Start)
	failed("START", err)
	if c.EndTime != "" {
		end, err := history.ParseEnd(c.EndTime)
		failed("END_TIME", err)
		start, not := history.ParseTime(c.Start)
		if err == nil && not == nil && end.Compare(start) < 0 {
			failed("END_TIME", fmt.Errorf("it is before BRIDGE_START (%s): nothing would be delivered", c.Start))
		}
	}
	o, unreadable := Record(c)
	problems = append(problems, unreadable...)
	if len(unreadable) == 0 {
		problems = append(problems, unfit(c, o.Validate())...)
	}
	if c.OnGap == "rescan" {
		failed("ON_GAP", rescanProblem(c, &o))
	}
	if c.KafkaTLSEnabled && (c.KafkaTLSCertFile == "") == (c.KafkaTLSKeyFile == "") {
		_, err := (&kafka.TLS{CAFile: c.KafkaTLSCaFile}).Config()
		failed("KAFKA_TLS_CA_FILE", err)
		_, err = (&kafka.TLS{CertFile: c.KafkaTLSCertFile, KeyFile: c.KafkaTLSKeyFile}).Config()
		name := "KAFKA_TLS_CERT_FILE"
		if errors.Is(err, kafka.ErrEncrypted) {
			name = "KAFKA_TLS_KEY_FILE"
		}
		failed(name, err)
	}
	return append(problems, topicProblems(c)...)
}

// unfit returns what does not fit together, each with the setting that it begins with. The texts are CockroachDB's.
func unfit(c *config.Config, err error) (problems []error) {
	all, _ := err.(interface{ Unwrap() []error })
	if all == nil {
		return nil
	}
	for _, err := range all.Unwrap() {
		word := regexp.MustCompile(`^!?[a-z_]+`).FindString(err.Error())
		name := strings.ToUpper(word)
		if _, is := optionFields(&envelope.Options{})[word]; is || word == "!before" {
			name = "OPTIONS"
		}
		text := strings.TrimPrefix(err.Error(), word+": ")
		problems = append(problems, c.Problem(name, "%s", text))
	}
	return problems
}

// rescanProblem returns why a sweep could not repair the topics when history is lost.
func rescanProblem(c *config.Config, record *envelope.Options) error {
	switch {
	case c.TopicShared:
		return errors.New("other accounts write to these topics, too (BRIDGE_TOPIC_SHARED), and a sweep " +
			"cannot tell their keys apart: set BRIDGE_ON_GAP=continue")
	case record.Envelope == envelope.KeyOnly && record.Deletes != envelope.DeletesTombstone:
		return errors.New("a sweep needs records that say which keys are deleted, and those of " +
			"BRIDGE_ENVELOPE=key_only do not: set BRIDGE_DELETES=tombstone, or BRIDGE_ON_GAP=continue")
	}
	filter := envelope.Filter{EventTypes: c.EventTypes.Included(), ExcludeEventTypes: c.EventTypes.Excluded()}
	if !filter.Deletions() {
		return errors.New("BRIDGE_EVENT_TYPES leaves out BlobDeleted, and a sweep writes deletions: set " +
			"BRIDGE_ON_GAP=continue")
	}
	return nil
}

func topicProblems(c *config.Config) (problems []error) {
	topics, err := envelope.NewTopics(c.Topic, "")
	if err != nil {
		problems = append(problems, c.Problem("TOPIC", "%w", err))
	} else {
		for _, own := range []string{plain.StateTopic(c.Name), plain.DeadLetterTopic(c.Name)} {
			if err := topics.Apart(own); err != nil {
				problems = append(problems, c.Problem("TOPIC", "%w", err))
			}
		}
	}
	if n := LongestTopic(c); n > maxTopic {
		problems = append(problems, c.Problem("TOPIC", "names of up to %d bytes, and a topic has %d", n, maxTopic))
	}
	return problems
}

// maxTopic leaves room for the suffix of the topic of markers. Longer names would be cut, and two could become one.
const maxTopic = 240

// LongestTopic returns the length of the longest name of a topic: accounts have up to 24 characters, containers 63.
func LongestTopic(c *config.Config) int {
	name := envelope.KafkaName(strings.NewReplacer("{account}", "", "{container}", "").Replace(c.Topic))
	return len(name) + 24*strings.Count(c.Topic, "{account}") + 63*strings.Count(c.Topic, "{container}")
}

// Record returns the form of records, without their topic and the account. It reports every setting that does not
// parse; Validate reports those that do not fit together.
func Record(c *config.Config) (o envelope.Options, problems []error) {
	parse := func(name, text string, to encoding.TextUnmarshaler) {
		if text == "" {
			return // the envelope's default
		}
		if err := to.UnmarshalText([]byte(text)); err != nil {
			problems = append(problems, c.Problem(name, "%w", err))
		}
	}
	var f envelope.Format
	var e envelope.Envelope
	parse("FORMAT", c.Format, &f)
	parse("ENVELOPE", c.Envelope, &e)
	o = envelope.Defaults(f, e)
	parse("EVENTS", c.Events, &o.Events)
	parse("KEY_FORMAT", c.KeyFormat, &o.KeyFormat)
	parse("DELETES", c.Deletes, &o.Deletes)
	parse("AVRO_TIMESTAMPS", c.AvroTimestamps, &o.AvroTimestamps)
	parse("RESOLVED_TO", c.ResolvedTo, &o.Markers)
	parse("HEADERS", c.Headers, &o.Headers)
	if c.EnrichedProperties == "none" {
		o.Properties = 0
	} else {
		parse("ENRICHED_PROPERTIES", c.EnrichedProperties, &o.Properties)
	}
	if e == envelope.Enriched {
		o.Updated = o.Properties&envelope.Source != 0
	}
	if words := c.Options.Included(); len(words) > 0 {
		for word, field := range optionFields(&o) {
			*field = slices.Contains(words, word)
		}
	}
	o.NoBefore = slices.Contains(c.Options, "!before")
	o.Columns, o.Exclude = c.Columns.Included(), c.Columns.Excluded()
	parse("MAPS", c.Maps, &o.Maps)
	for _, h := range c.ExtraHeaders {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			problems = append(problems, c.Problem("EXTRA_HEADERS", "want name=value, comma separated"))
			break
		}
		o.ExtraHeaders = append(o.ExtraHeaders, envelope.Header{Key: name, Value: []byte(value)})
	}
	return o, problems
}

// optionFields maps the words of OPTIONS to what they turn on.
func optionFields(o *envelope.Options) map[string]*bool {
	return map[string]*bool{"updated": &o.Updated, "key_in_value": &o.KeyInValue, "topic_in_value": &o.TopicInValue,
		"mvcc_timestamp": &o.MVCCTimestamp, "diff": &o.Diff}
}

// Output turns settings into the form of records, their topics, and a function that makes the encoder of a topic.
func Output(c *config.Config, account string, observe Observe) (
	record envelope.Options, topics *envelope.Topics,
	encoder func(context.Context, string) (*envelope.Encoder, error), err error,
) {
	record, problems := Record(c)
	topics, err = envelope.NewTopics(c.Topic, account)
	if err := errors.Join(append(problems, err)...); err != nil {
		return record, nil, nil, err
	}
	record.Account = account
	registry, err := Registry(c, observe)
	if err != nil {
		return record, nil, nil, err
	}
	encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		o := record
		o.Topic = topic
		if registry != nil {
			o.Register = func(s envelope.Subject) (int, error) { return registry.ID(ctx, s.Name, s.Schema) }
		}
		e, err := envelope.NewEncoder(o)
		if _, one := topics.Constant(); one && errors.As(err, new(*kafka.SchemaError)) {
			return nil, &refusedError{err}
		}
		return e, err
	}
	return record, topics, encoder, nil
}

// refusedError is a schema that the registry rejects or does not have, for a bridge with one topic. All records need
// that schema, so to the engine it is an error of the settings. A template makes many topics, and the schema of one can
// be registered later: such an error stops only the shards with events for that topic.
type refusedError struct{ error }

func (e *refusedError) Unwrap() []error {
	return []error{e.error, &plain.SettingsError{Problem: e.Error()}}
}

// Registry returns the client of the schema registry, or nil if the settings need none.
func Registry(c *config.Config, observe Observe) (*kafka.Registry, error) {
	if !c.Registry() {
		return nil, nil
	}
	r := kafka.Registry{
		URLs: c.RegistryURL, LookUpOnly: !c.RegistryAutoRegister, Timeout: c.NetworkTimeout, Observe: observe.Registry,
		TLS: kafka.TLS{CAFile: c.RegistryCaFile, CertFile: c.RegistryCertFile, KeyFile: c.RegistryKeyFile},
		Credentials: func() (user, password string, err error) {
			fresh, err := c.Reread() // secrets in files may have been replaced
			if err != nil {
				return "", "", fmt.Errorf("reading the registry's credentials: %w", err)
			}
			return fresh.RegistryUsername, string(fresh.RegistryPassword), nil
		},
	}
	if err := r.Open(); err != nil {
		return nil, err
	}
	return &r, nil
}

// PinKeys makes every encoder of o write keys with a schema id, unless the id is 0.
func PinKeys(o *bridge.Options, id int) {
	if id == 0 {
		return
	}
	encoder := o.Records.Encoder
	o.Records.Encoder = func(ctx context.Context, topic string) (*envelope.Encoder, error) {
		e, err := encoder(ctx, topic)
		if err == nil {
			e.PinKey(id)
		}
		return e, err
	}
}

// Example returns the record of an invented event, as the encoder writes it.
func Example(o envelope.Options) (r envelope.Record, err error) {
	o.Register = func(envelope.Subject) (int, error) { return 1, nil } // of keys; nothing is registered
	o.Now = func() int64 { return time.Date(2026, 1, 31, 12, 0, 1, 0, time.UTC).UnixNano() }
	encoder, err := envelope.NewEncoder(o)
	if err != nil {
		return r, err
	}
	segment, err := source.ParseSegment("2026/01/31/1200")
	if err != nil {
		return r, err
	}
	_, _, err = encoder.Append(nil, &r, &ocf.Event{
		SchemaVersion: 6, EventType: "BlobCreated", API: "PutBlob",
		Topic:     "/subscriptions/s/resourceGroups/g/providers/Microsoft.Storage/storageAccounts/myaccount",
		Subject:   "/blobServices/default/containers/photos/blobs/cat.jpg",
		EventTime: "2026-01-31T12:00:00.0000000Z", ID: "00000000-0000-0000-0000-000000000000", ETag: "0x8D",
		BlobType: "BlockBlob", BlobTier: "Hot", ContentType: "image/jpeg", ContentLength: 1024, HasContentLength: true,
		Sequencer: "00000000000000000000000000000001000000000000002a",
	}, source.Position{Segment: segment, Offset: 2434})
	return r, err
}
