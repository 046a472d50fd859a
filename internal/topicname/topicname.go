// Package topicname spells the names of topics that follow from another name.
package topicname

import "strings"

const (
	state       = ".offsets"
	deadLetters = ".dlq"
	markers     = ".resolved"
)

// State returns the topic that holds the state of a bridge.
func State(bridge string) string { return bridge + state }

// Bridge returns the bridge whose state a topic holds, if the topic is named like one.
func Bridge(topic string) (bridge string, ok bool) { return strings.CutSuffix(topic, state) }

// DeadLetters returns the topic of what a bridge can't encode.
func DeadLetters(bridge string) string { return bridge + deadLetters }

// Markers returns the topic for the markers of a topic of records, where markers have a topic of their own.
func Markers(records string) string { return records + markers }

// IsMarkers reports whether a topic is named like one of markers.
func IsMarkers(topic string) bool { return strings.HasSuffix(topic, markers) }

// Records returns the topic of records that a topic of markers describes. Any other topic is returned as it is.
func Records(topic string) string { return strings.TrimSuffix(topic, markers) }
