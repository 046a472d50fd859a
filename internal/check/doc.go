// Package check tries what a bridge needs of its surroundings: the feed, the brokers, their topics and the schema
// registry. It writes nothing. What it finds is a list of lines, each with what to do about it.
package check
