package check

import (
	"context"
	"fmt"

	"blobfeed/internal/plain"
	"blobfeed/source/inventory"
)

// maxContainers bounds the listing of containers: 5,000 are on a page.
const maxContainers = 100_000

// containers counts the containers of the account that the settings select, and the topics that they make. The events
// of others that are created later, or were deleted, make topics, too.
func (ck *checker) containers(ctx context.Context) {
	o := ck.bridge
	if o.Inventory == nil {
		return
	}
	listed, count, topics, more := 0, 0, map[string]bool{}, ""
	for name, err := range inventory.Names(ctx, o.Inventory) {
		if err != nil {
			text, _ := plain.SplitRemedy(err)
			ck.Add("topics", OK, "the containers of the account are not counted, which run does not need: "+text, "")
			return
		}
		if listed++; listed > maxContainers {
			more = "more than "
			break
		}
		if !o.Filter.Selects(name) {
			continue
		}
		topic, err := o.Topics.Name("account", name) // whose name does not matter for the count
		if err != nil {
			ck.Add("topics", Warning, err.Error(), "leave the container out with BRIDGE_CONTAINERS=!"+name)
			continue
		}
		count++
		topics[topic] = true
	}
	detail := fmt.Sprintf("the settings select %s%s of the account: %s", more, plain.Count(count, "container"),
		plain.Count(len(topics), "topic"))
	plan := o.TopicPlan()
	if near, do := plan.NearLimit(len(topics)); near {
		ck.Add("topics", Warning, fmt.Sprintf("%s of at most %d (BRIDGE_TOPIC_LIMIT)", detail, o.TopicLimit), do)
		return
	}
	ck.Add("topics", OK, detail, "")
}
