package status

import (
	"fmt"
	"strings"
	"testing"
)

// Few topics are listed, many are grouped by their partitions, the largest group first.
func TestTopicLines(t *testing.T) {
	few := "topic     a, 6 partitions\ntopic     b, 3 partitions\n"
	text := func(topics []Topic) string { return (&Status{Started: true, Topics: topics}).Text() }
	if got := text([]Topic{{"a", 6}, {"b", 3}}); !strings.Contains(got, "\n"+few) {
		t.Errorf("%s", got)
	}
	many := []Topic{{"old-1", 3}, {"old-2", 3}}
	for i := range 300 {
		many = append(many, Topic{fmt.Sprintf("t-%03d", i), 6})
	}
	want := "topics    300 with 6 partitions: t-000, t-001, t-002, and 297 more (--output json lists all)\n" +
		"topics    2 with 3 partitions: old-1, old-2\n"
	if got := text(many); !strings.Contains(got, "\n"+want) {
		t.Errorf("%s", got)
	}
}
