package offsets

import (
	"cmp"
	"slices"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

// balancer spreads the leases so that the shards in use are spread, too. A feed has few shards, 00 and up, so
// mostly only the lowest leases have work; a balancer that only counts leases may give all of those to one
// instance.
//
// With n instances, each n leases in a row go to n different ones. So however many of the lowest leases are in use, two
// instances differ by one of them at most. Within that, leases stay where they are. A lease that stays is not
// interrupted, because the protocol is the cooperative one, in which only leases that move are given up.
type balancer struct{ kgo.GroupBalancer }

func newBalancer() kgo.GroupBalancer { return balancer{kgo.CooperativeStickyBalancer()} }

// ProtocolName implements kgo.GroupBalancer.
func (balancer) ProtocolName() string { return "blobfeed-leases" }

// MemberBalancer implements kgo.GroupBalancer.
func (b balancer) MemberBalancer(
	members []kmsg.JoinGroupResponseMember,
) (kgo.GroupMemberBalancer, map[string]struct{}, error) {
	c, err := kgo.NewConsumerBalancer(b, members)
	return c, c.MemberTopics(), err
}

// Balance implements kgo.ConsumerBalancerBalance.
func (balancer) Balance(c *kgo.ConsumerBalancer, topics map[string]int32) kgo.IntoSyncAssignment {
	plan := c.NewPlan()
	for topic, leases := range topics { // of which there is one
		owners, claims := make([]int, leases), make([]int32, leases)
		for lease := range owners {
			owners[lease] = -1
		}
		n := 0
		c.EachMember(func(_ *kmsg.JoinGroupResponseMember, meta *kmsg.ConsumerMemberMetadata) {
			for _, owned := range meta.OwnedPartitions {
				for _, lease := range owned.Partitions {
					// A member that missed a rebalance may claim a lease that another member has by now.
					if owned.Topic == topic && lease < leases &&
						(owners[lease] < 0 || meta.Generation > claims[lease]) {
						owners[lease], claims[lease] = n, meta.Generation
					}
				}
			}
			n++
		})
		for lease, to := range spread(owners, n) {
			member, _ := c.MemberAt(to)
			plan.AddPartition(member, topic, int32(lease))
		}
	}
	plan.AdjustCooperative(c)
	return plan
}

// spread returns the owner of each lease among n members. Owners are the present ones, -1 where there is none.
func spread(owners []int, n int) []int {
	next, has := make([]int, 0, len(owners)), make([]int, n)
	for row := range slices.Chunk(owners, n) {
		taken := make([]bool, n)
		base := len(next)
		for _, owner := range row {
			if owner >= 0 && !taken[owner] {
				taken[owner] = true
				next = append(next, owner)
			} else {
				next = append(next, -1)
			}
		}
		var free []int
		for member := range n {
			if !taken[member] {
				free = append(free, member)
			}
		}
		slices.SortStableFunc(free, func(a, b int) int { return cmp.Compare(has[a], has[b]) })
		for i := base; i < len(next); i++ {
			if next[i] < 0 {
				next[i], free = free[0], free[1:]
			}
			has[next[i]]++
		}
	}
	return next
}
