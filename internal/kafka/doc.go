// Package kafka makes the client options that all of the bridge's Kafka clients share, and talks to schema registries.
package kafka
