package bridge

import (
	"errors"
	"strings"
	"testing"
)

// A template by which a container's events could go to the state or to the dead letters is refused at the start: the container
// may come years later, and every instance would end at it.
func TestTemplateOfOwnTopics(t *testing.T) {
	for _, c := range []struct{ template, letters, meets string }{
		{"test.{container}", "", "test.offsets"},
		{"{container}.dlq", "test.dlq", "test.dlq"},
		{"test.offsets", "", "test.offsets"},
	} {
		o, _ := options(t, broker(t), realFeed)
		o.Topics, o.DeadLetter = topics(t, c.template), c.letters
		var settings *SettingsError
		if err := runOnce(t, o); !errors.As(err, &settings) || !strings.Contains(err.Error(), "could go to "+c.meets) {
			t.Errorf("%s: %v", c.template, err)
		}
	}
}
