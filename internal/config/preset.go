package config

import (
	"net"
	"reflect"
)

// preset gives settings that are not set the values that a service needs.
func (c *Config) preset() {
	switch c.KafkaPreset {
	case "event_hubs":
		c.presume("KAFKA_TLS_ENABLED", true)
		// Event Hubs takes uncompressed and gzip batches only.
		c.presume("KAFKA_COMPRESSION", "none")
		for i, b := range c.KafkaBrokers {
			if _, _, err := net.SplitHostPort(b); err != nil && b != "" {
				c.KafkaBrokers[i] = net.JoinHostPort(b, "9093")
			}
		}
		if c.KafkaSASLPassword != "" { // a connection string
			c.presume("KAFKA_SASL_MECHANISM", "PLAIN")
			c.presume("KAFKA_SASL_USERNAME", "$ConnectionString")
			return
		}
		c.presume("KAFKA_SASL_MECHANISM", "OAUTHBEARER")
		c.presume("KAFKA_SASL_TOKENS", "default")
		if len(c.KafkaBrokers) > 0 {
			host, _, _ := net.SplitHostPort(c.KafkaBrokers[0])
			c.presume("KAFKA_SASL_SCOPE", "https://"+host+"/.default")
		}
	case "confluent_cloud":
		c.presume("KAFKA_TLS_ENABLED", true)
		c.presume("KAFKA_SASL_MECHANISM", "PLAIN")
	}
}

// presume sets a setting that is not set.
func (c *Config) presume(name string, value any) {
	if s, ok := find(table, name); ok && c.origins[name] == "" {
		f := s.of(c)
		f.Set(reflect.ValueOf(value).Convert(f.Type()))
		c.origins[name] = "preset " + c.KafkaPreset
	}
}
