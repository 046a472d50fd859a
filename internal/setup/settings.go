package setup

import (
	"encoding"
	"errors"
	"slices"
	"strings"

	"blobfeed/envelope"
	"blobfeed/internal/config"
	"blobfeed/internal/history"
	"blobfeed/internal/kafka"
	"blobfeed/internal/plain"
)

// Examined adds to what loading settings has returned the problems of the texts that only their users can parse:
// Examined(config.Load(true)).
func Examined(c *config.Config, err error) (*config.Config, error) {
	return c, errors.Join(err, errors.Join(parseProblems(c)...))
}

// LoadFleet reads the settings of all bridges of the settings file. It returns nil if the settings are those of one.
func LoadFleet() (*config.Fleet, error) { return config.LoadFleet(parseProblems) }

// RequireFleet is LoadFleet, but returns an error instead of nil.
func RequireFleet() (*config.Fleet, error) { return config.RequireFleet(parseProblems) }

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
		_, err := history.ParseEnd(c.EndTime)
		failed("END_TIME", err)
	}
	o, unreadable := Record(c)
	problems = append(problems, unreadable...)
	if len(unreadable) == 0 {
		if err := o.Validate(); err != nil {
			problems = append(problems, err)
		}
	}
	if c.OnGap == "rescan" {
		failed("ON_GAP", rescanProblem(c, &o))
	}
	if c.KafkaTLSEnabled && (c.KafkaTLSCertFile == "") == (c.KafkaTLSKeyFile == "") {
		_, err := (&kafka.TLS{
			CAFile: c.KafkaTLSCaFile, CertFile: c.KafkaTLSCertFile, KeyFile: c.KafkaTLSKeyFile}).Config()
		failed("KAFKA_TLS_ENABLED", err)
	}
	return append(problems, topicProblems(c)...)
}

// rescanProblem returns why a sweep could not repair the topics when history is lost.
func rescanProblem(c *config.Config, record *envelope.Options) error {
	switch {
	case c.TopicShared:
		return errors.New("other accounts write to these topics, too (TOPIC_SHARED), and a sweep " +
			"cannot tell their keys apart: set BRIDGE_ON_GAP=continue")
	case record.Envelope == envelope.KeyOnly && record.Deletes != envelope.DeletesTombstone:
		return errors.New("a sweep needs records that say which keys are deleted, and those of " +
			"ENVELOPE=key_only do not: set BRIDGE_DELETES=tombstone, or BRIDGE_ON_GAP=continue")
	}
	filter := envelope.Filter{EventTypes: c.EventTypes.Included(), ExcludeEventTypes: c.EventTypes.Excluded()}
	if !filter.Deletions() {
		return errors.New("EVENT_TYPES leaves out BlobDeleted, and a sweep writes deletions: set " +
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
