package plain

import "testing"

func TestNearest(t *testing.T) {
	names := []string{"BRIDGE_TOPIC", "BRIDGE_NAME", "BRIDGE_KAFKA_BROKERS"}
	for written, want := range map[string]string{"BRIDGE_TOPIK": "BRIDGE_TOPIC", "BRIDGE_KAFKA_BROKER": "BRIDGE_KAFKA_BROKERS", "BRIDGE_SOMETHING_ELSE": "", "BRIDGE_NAMES": "BRIDGE_NAME"} {
		if got := Nearest(written, names, 3); got != want {
			t.Errorf("%s: %q, want %q", written, got, want)
		}
	}
}
