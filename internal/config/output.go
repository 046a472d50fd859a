package config

import (
	"encoding"
	"fmt"
	"net/url"
	"strings"

	"blobfeed/envelope"
)

// Topics returns the topics of the records. Account is of events that name none.
func (c *Config) Topics(account string) (*envelope.Topics, error) {
	return envelope.NewTopics(c.TopicPrefix+c.Topic, account)
}

// maxTopic leaves room for the suffix of the topic of markers, and what is longer would be cut, and be one name for two.
const maxTopic = 240

// LongestTopic returns how long the name of a topic may become: accounts have up to 24 characters, containers 63.
func (c *Config) LongestTopic() int {
	name := envelope.KafkaName(strings.NewReplacer("{account}", "", "{container}", "").Replace(c.TopicPrefix + c.Topic))
	return len(name) + 24*strings.Count(c.Topic+c.TopicPrefix, "{account}") + 63*strings.Count(c.Topic+c.TopicPrefix, "{container}")
}

// Record returns how records are written, but for their topic and what is made at run time. Of settings that can't be
// read it reports every one; whether they fit each other is Validate's to say.
func (c *Config) Record() (o envelope.Options, problems []error) {
	parse := func(name, text string, to encoding.TextUnmarshaler) {
		if text == "" {
			return // what the envelope has by default
		}
		if err := to.UnmarshalText([]byte(text)); err != nil {
			problems = append(problems, fmt.Errorf("%s_%s: %w", Prefix, name, err))
		}
	}
	var f envelope.Format
	var e envelope.Envelope
	parse("FORMAT", c.Format, &f)
	parse("ENVELOPE", c.Envelope, &e)
	o = envelope.Defaults(f, e)
	parse("EVENTS", c.Events, &o.Events)
	parse("KEY_FORMAT", c.KeyFormat, &o.KeyFormat)
	parse("BEFORE", c.Before, &o.Before)
	parse("DELETES", c.Deletes, &o.Deletes)
	parse("AVRO_TIMESTAMPS", c.AvroTimestamps, &o.AvroTimestamps)
	parse("RESOLVED_TO", c.ResolvedTo, &o.Markers)
	parse("HEADERS", c.Headers, &o.Headers)
	if c.EnrichedProperties == "none" {
		o.Properties = 0
	} else {
		parse("ENRICHED_PROPERTIES", c.EnrichedProperties, &o.Properties)
	}
	if c.Updated != nil {
		o.Updated = *c.Updated
	} else if e == envelope.Enriched {
		o.Updated = o.Properties&envelope.Source != 0
	}
	if c.KeyInValue != nil {
		o.KeyInValue = *c.KeyInValue
	}
	o.Diff, o.TopicInValue, o.MVCCTimestamp, o.Exclude = c.Diff, c.TopicInValue, c.MVCCTimestamp, c.ExcludeColumns
	for _, h := range c.ExtraHeaders {
		name, value, ok := strings.Cut(h, "=")
		if !ok {
			problems = append(problems, fmt.Errorf("%s_EXTRA_HEADERS: want name=value, comma separated", Prefix))
			break
		}
		o.ExtraHeaders = append(o.ExtraHeaders, envelope.Header{Key: name, Value: []byte(value)})
	}
	return o, problems
}

// Registry reports whether records need schemas.
func (c *Config) Registry() bool { return c.Format == "avro" || c.KeyFormat == "avro" }

func (c *Config) validateOutput(p *problems, kafka bool) {
	o, unreadable := c.Record()
	*p = append(*p, unreadable...)
	if len(unreadable) == 0 {
		if err := o.Validate(); err != nil {
			*p = append(*p, err)
		}
	}
	if kafka && c.Registry() && len(c.RegistryURL) == 0 {
		p.add("REGISTRY_URL", "required for Avro: http://host:8081, for instance")
	}
	for _, text := range c.RegistryURL {
		u, err := url.Parse(text)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			p.add("REGISTRY_URL", "want http://host:port or https://host:port, comma separated")
		} else if u.User != nil || u.RawQuery != "" {
			p.add("REGISTRY_URL", "a user or a query would be shown: use REGISTRY_USERNAME and REGISTRY_PASSWORD, or REGISTRY_TOKEN")
		}
	}
	if c.RegistryToken != "" && c.RegistryUsername != "" {
		p.add("REGISTRY_TOKEN", "is set, and REGISTRY_USERNAME, too: keep one")
	}
	if (c.RegistryUsername == "") != (c.RegistryPassword == "") {
		p.add("REGISTRY_USERNAME", "and REGISTRY_PASSWORD go together")
	}
	if (c.RegistryCert == "") != (c.RegistryKey == "") {
		p.add("REGISTRY_CERT", "and REGISTRY_KEY go together")
	}
}
