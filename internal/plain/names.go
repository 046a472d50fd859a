package plain

import "strings"

// AccountName returns the account that the address of a blob service names: <account>.blob.<domain>, also with dfs, or
// <host>:<port>/<account>. The secondary endpoint is of the same account. It is "" for a domain of one's own.
func AccountName(host, path string) string {
	name, domain, _ := strings.Cut(strings.ToLower(host), ".")
	if d := "." + domain; !strings.Contains(d, ".blob.") && !strings.Contains(d, ".dfs.") {
		name, _, _ = strings.Cut(strings.Trim(path, "/"), "/")
	}
	if strings.HasPrefix(name, "$") {
		return "" // a container
	}
	return strings.TrimSuffix(name, "-secondary")
}

// ConnectionPart returns the value of a key of a connection string, "" if it is missing.
func ConnectionPart(connection, key string) string {
	for part := range strings.SplitSeq(connection, ";") {
		if name, value, _ := strings.Cut(strings.TrimSpace(part), "="); name == key {
			return value
		}
	}
	return ""
}

// How the names of topics end that follow from another name.
const (
	state       = ".offsets"
	deadLetters = ".dlq"
	markers     = ".resolved"
)

// StateTopic returns the topic that holds the state of a bridge.
func StateTopic(bridge string) string { return bridge + state }

// BridgeOfState returns the bridge whose state a topic holds, if the topic is named like one.
func BridgeOfState(topic string) (bridge string, ok bool) { return strings.CutSuffix(topic, state) }

// DeadLetterTopic returns the topic of what a bridge can't encode.
func DeadLetterTopic(bridge string) string { return bridge + deadLetters }

// MarkerTopic returns the topic for the markers of a topic of records, where markers have a topic of their own.
func MarkerTopic(records string) string { return records + markers }

// IsMarkerTopic reports whether a topic is named like one of markers.
func IsMarkerTopic(topic string) bool { return strings.HasSuffix(topic, markers) }

// RecordTopic returns the topic of records that a topic of markers describes. Any other topic is returned as it is.
func RecordTopic(topic string) string { return strings.TrimSuffix(topic, markers) }
