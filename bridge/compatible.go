package bridge

import "fmt"

// SettingsError says that the settings do not fit each other, the stored state or the broker. Another attempt does not
// help.
type SettingsError struct{ Problem string }

func (e *SettingsError) Error() string { return e.Problem }

// Compatible rejects a state that other settings, or another feed, have written.
func (o *Options) Compatible(feed string, frozen map[string]string) error {
	restart := fmt.Sprintf("set it back, or restart from scratch with bridge reset, or with another BRIDGE_NAME and "+
		"BRIDGE_TOPIC (the state is in topic %s)", o.offsetsTopic())
	if feed != o.FeedID {
		return &SettingsError{Problem: fmt.Sprintf(
			"BRIDGE_SOURCE_URL names feed %s, but %s has progress on feed %s: %s",
			o.FeedID, o.Name, feed, restart)}
	}
	for name, have := range frozen {
		if want, ok := o.Frozen[name]; ok && want != have {
			return &SettingsError{Problem: fmt.Sprintf("%s=%s, but records were written with %s: %s",
				name, want, have, restart)}
		}
	}
	return nil
}
