package catalog

import (
	"strings"
	"testing"

	"blobfeed/offsets"
)

// Before its first segment is complete, only the settings of a bridge name its topic. It belongs to the bridge already.
func TestTopicOfASettingIsTaken(t *testing.T) {
	const topic = "blobs"
	for template, want := range map[string]string{
		"": "old", topic: "old " + topic, "blob changes": "old blob_u0020_changes", "{container}": "old",
	} {
		c := &offsets.Claim{Settings: map[string]string{"BRIDGE_TOPIC": template}, Topics: []string{"old"}}
		if have := strings.Join(RecordTopics(c), " "); have != want {
			t.Errorf("%q: topics %s, want %s", template, have, want)
		}
		o := &Options{Template: topic}
		if _, taken := o.shares([]string{topic}, c); taken != (template == topic) {
			t.Errorf("%q: taken %t", template, taken)
		}
	}
}
