package status

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"blobfeed/internal/plain"
)

// Of more topics than manyTopics, which a template makes, the report shows how many there are, and some names.
const manyTopics, someTopics = 10, 3

// topicLines returns a line for each topic, or, if there are many, for each number of partitions.
func topicLines(topics []Topic) string {
	var b strings.Builder
	if len(topics) <= manyTopics {
		for _, t := range topics {
			fmt.Fprintf(&b, "topic     %s, %s\n", t.Name, plain.Count(t.Partitions, "partition"))
		}
		return b.String()
	}
	groups := map[int32][]string{}
	var sizes []int32
	for _, t := range topics {
		if groups[t.Partitions] == nil {
			sizes = append(sizes, t.Partitions)
		}
		groups[t.Partitions] = append(groups[t.Partitions], t.Name)
	}
	slices.SortFunc(sizes, func(a, b int32) int {
		return cmp.Or(cmp.Compare(len(groups[b]), len(groups[a])), cmp.Compare(a, b))
	})
	for _, n := range sizes {
		names := groups[n]
		fmt.Fprintf(&b, "topics    %s with %s: %s", plain.Number(len(names)), plain.Count(n, "partition"),
			strings.Join(names[:min(len(names), someTopics)], ", "))
		if more := len(names) - someTopics; more > 0 {
			fmt.Fprintf(&b, ", and %d more (--output json lists all)", more)
		}
		b.WriteByte('\n')
	}
	return b.String()
}
