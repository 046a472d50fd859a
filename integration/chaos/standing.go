//go:build unix

package chaos

import (
	"context"
	"fmt"
	"slices"
	"strings"
)

// standing says what keeps the instances that run from being the group: each a member, with as many leases as the
// others, within one. An instance that looks alive and does nothing is found here, or by the events of its leases,
// which never come.
func (r *run) standing(ctx context.Context) (problem string, err error) {
	name := strings.TrimSuffix(r.Topic, ".changes")
	groups, err := r.admin.DescribeGroups(ctx, name)
	if err != nil {
		return "", err
	}
	g := groups[name]
	if g.Err != nil {
		return "", g.Err
	}
	held := map[string]int{} // by client
	var counts []int
	for _, m := range g.Members {
		n := 0
		if c, ok := m.Assigned.AsConsumer(); ok {
			for _, t := range c.Topics {
				n += len(t.Partitions)
			}
		}
		held[m.ClientID] = n
		counts = append(counts, n)
	}
	running := r.running()
	for _, i := range running {
		if _, is := held[name+"-"+i.Name]; !is {
			return fmt.Sprintf("%s runs, and is no member: %v", i.Name, held), nil
		}
	}
	if g.State != "Stable" || len(held) != len(running) || slices.Max(counts)-slices.Min(counts) > 1 {
		return fmt.Sprintf("of %d instances, in a group that is %s, each has so many leases: %v", len(running), g.State,
			held), nil
	}
	return "", nil
}
