// Package status reports how a bridge is doing from what is in Kafka alone: its offsets topic, and the members of its
// consumer group. It needs neither the feed nor an instance, so it works from anywhere that reaches the brokers, and
// when all instances are gone.
//
// Of makes the report of a state, and Reader reads that state from the brokers. An instance makes the same report of
// the state that it holds, and adds what it alone knows (package ops). The names in the report are part of the
// interface.
package status
