package config

import (
	"net"
	"slices"
	"strings"
)

// given is what a preset makes of a setting that is not set.
type given struct {
	name, value string
	needs       string // the values that do not contradict the preset; "": all
}

// uses are presets for the records: what one kind of reader needs together.
var uses = map[string][]given{
	// Rows by key: for compacted topics, and sinks that upsert. Rows have plain columns only.
	"table": {
		{"FORMAT", "json", "json"},
		{"EVENTS", "state", "state"},
		{"ENVELOPE", "row", "row"},
		{"DELETES", "tombstone", "tombstone"},
		{"RESOLVED_TO", "topic", "topic off"},
		{"KEY_FORMAT", "string", ""},
		{"OPTIONS", "none", ""},
		{"MAPS", "json", ""},
	},
	// For readers of Debezium's messages. With JSON, Connect's sinks need the schema in each value. Keys have none:
	// text gets one of StringConverter.
	"debezium": {
		{"ENVELOPE", "enriched", "enriched"},
		{"DELETES", "both", ""},
		{"RESOLVED_TO", "topic", ""},
		{"MAPS", "json", ""},
	},
	"debezium json": {{"KEY_FORMAT", "string", ""}, {"ENRICHED_PROPERTIES", "source,schema", ""}},
	// Every event that the feed has, also those that change no blob.
	"log": {
		{"EVENTS", "all", "all"},
		{"ENVELOPE", "wrapped", "wrapped bare row key_only"},
		{"DELETES", "envelope", "envelope both"},
		{"RESOLVED_TO", "inline", ""},
	},
}

// servicePresets say what a Kafka service needs.
var servicePresets = []string{"event_hubs", "confluent_cloud"}

// preset gives settings that are not set the values that the presets say.
func (c *Config) preset(p *problems) {
	for _, kind := range [][]string{{"table", "debezium", "log"}, servicePresets} {
		var chosen []string
		for _, name := range c.Preset {
			if slices.Contains(kind, name) && !slices.Contains(chosen, name) {
				chosen = append(chosen, name)
			}
		}
		if len(chosen) > 1 {
			p.add("PRESET", "want at most one of %s", strings.Join(kind, ", "))
			return
		}
	}
	for _, name := range c.Preset {
		c.use(p, name, uses[name])
		if c.Format == "json" {
			c.use(p, name, uses[name+" json"])
		}
		c.service(name)
	}
}

// use gives settings the values of a preset, and reports those that contradict it.
func (c *Config) use(p *problems, preset string, all []given) {
	for _, g := range all {
		c.presume(preset, g.name, g.value)
		s, _ := find(table, g.name)
		if have := s.of(c).String(); g.needs != "" && !slices.Contains(strings.Fields(g.needs), have) {
			p.add(g.name, "BRIDGE_PRESET=%s needs %s: remove one of the two settings", preset,
				strings.Join(strings.Fields(g.needs), " or "))
		}
	}
}

// service gives settings the values that a Kafka service needs.
func (c *Config) service(preset string) {
	switch preset {
	case "event_hubs":
		c.presume(preset, "KAFKA_TLS_ENABLED", "true")
		// Event Hubs takes uncompressed and gzip batches only.
		c.presume(preset, "KAFKA_COMPRESSION", "none")
		for i, b := range c.KafkaBrokers {
			if _, _, err := net.SplitHostPort(b); err != nil && b != "" {
				c.KafkaBrokers[i] = net.JoinHostPort(b, "9093")
			}
		}
		if c.KafkaSASLPassword != "" && c.KafkaSASLTokens == "" { // a connection string
			c.presume(preset, "KAFKA_SASL_MECHANISM", "PLAIN")
			c.presume(preset, "KAFKA_SASL_USERNAME", "$ConnectionString")
			return
		}
		c.presume(preset, "KAFKA_SASL_MECHANISM", "OAUTHBEARER")
		c.presume(preset, "KAFKA_SASL_TOKENS", "default")
		if len(c.KafkaBrokers) > 0 {
			host, _, _ := net.SplitHostPort(c.KafkaBrokers[0])
			c.presume(preset, "KAFKA_SASL_SCOPE", "https://"+host+"/.default")
		}
	case "confluent_cloud":
		c.presume(preset, "KAFKA_TLS_ENABLED", "true")
		c.presume(preset, "KAFKA_SASL_MECHANISM", "PLAIN")
	}
}

// presume sets a setting that is not set.
func (c *Config) presume(preset, name, value string) {
	if s, ok := find(table, name); ok && c.origins[name] == "" {
		_ = parse(s.of(c), value) // the preset's own texts, and a host, which is one
		c.origins[name] = "preset " + preset
	}
}
