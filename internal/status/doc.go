// Package status tells how a bridge is doing from what is in Kafka alone: its offsets topic, and the members of its consumer
// group. It needs neither the feed nor an instance, so it works from anywhere, and when all instances are gone.
//
// Of is the pure part: it makes the report of a state. Read asks the brokers for what Of takes. The names in the report are
// part of the interface, and those of an instance's own report for the same things.
package status
