// Package setup turns settings into the parts of a bridge: the feed, the Kafka client, the schema registry, the encoders,
// the state in Kafka, and with them bridge.Options. It is the only package that knows both the settings and the engine,
// so that neither knows the other.
package setup
