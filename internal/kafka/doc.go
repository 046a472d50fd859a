// Package kafka holds the options that all Kafka clients of the bridge share, and the client of the schema registry.
package kafka
