package main

import (
	"context"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/stack"
	"blobfeed/internal/testing/feedsim"
)

// cost is what the delivery of a feed took, the start of the program included.
type cost struct {
	perSecond    float64 // events
	micros       float64 // CPU of the program, an event
	broker       float64 // CPU of the brokers, an event, in microseconds
	disk         float64 // bytes on the brokers' disks, an event
	peak         float64 // resident bytes of the program, of one instance
	collecting   float64 // share of the program's CPU that the collection of garbage takes
	requests     float64 // to a blob endpoint, an event
	transactions float64 // an event
}

func (c cost) String() string {
	return fmt.Sprintf("%8.0f events/s  %5.2f µs CPU an event  %5.2f µs of the brokers  %5.0f bytes on disk  %4.0f MB"+
		"  %4.1f %% in collection", c.perSecond, c.micros, c.broker, c.disk, c.peak/1e6, 100*c.collecting)
}

// middle takes the median of each figure.
func middle(costs []cost) cost {
	of := func(figure func(cost) float64) float64 {
		var all []float64
		for _, c := range costs {
			all = append(all, figure(c))
		}
		return median(all)
	}
	return cost{
		of(func(c cost) float64 { return c.perSecond }),
		of(func(c cost) float64 { return c.micros }),
		of(func(c cost) float64 { return c.broker }),
		of(func(c cost) float64 { return c.disk }),
		of(func(c cost) float64 { return c.peak }),
		of(func(c cost) float64 { return c.collecting }),
		of(func(c cost) float64 { return c.requests }),
		of(func(c cost) float64 { return c.transactions }),
	}
}

// asUsersRunIt measures the program in a process of its own, with each variant of its settings in turn, so that all of
// them see the same machine. Without programs, it builds this one. A variant is "default" or assignments joined by +.
func asUsersRunIt(ctx context.Context, programs, variants []string, l load, rounds, brokers int) error {
	root, programs, err := prepare(programs)
	defer os.RemoveAll(root)
	if err != nil {
		return err
	}
	feed, credentials := "file://"+filepath.Join(root, "feed"), []string(nil)
	if l.delay < 0 {
		err = feedsim.Write(ctx, feedsim.Dir(filepath.Join(root, "feed")), l.spec(), nil)
	} else {
		var e *endpoint
		if e, err = serve(ctx, l); err == nil {
			defer e.close()
			feed, credentials = e.url(), e.credentials()
		}
	}
	if err != nil {
		return err
	}
	s, err := startCluster(ctx, brokers)
	if err != nil {
		return err
	}
	defer s.Close()
	costs := map[string][]cost{}
	for round := range rounds + 1 {
		for _, variant := range variants {
			for _, program := range programs {
				c, err := l.deliver(ctx, s, program, variant, feed, credentials...)
				if err != nil {
					return err
				}
				if round > 0 { // the first one warms up
					costs[program+variant] = append(costs[program+variant], c)
				}
			}
		}
	}
	for _, variant := range variants {
		for _, program := range programs {
			fmt.Printf("%-10s %-40s %s\n", filepath.Base(program), variant, middle(costs[program+variant]))
		}
	}
	return nil
}

// largestResident returns the largest resident size of a process so far; 0 if it has ended.
func largestResident(pid int) float64 {
	size, _ := stack.LargestOf(pid)
	return size
}

// sizeAndDelete returns what the topics of a bridge take on the disks of all brokers, and deletes them.
func sizeAndDelete(ctx context.Context, brokers []string, name string) (size int64, err error) {
	cl, err := kgo.NewClient(kgo.SeedBrokers(brokers...))
	if err != nil {
		return 0, err
	}
	defer cl.Close()
	admin := kadm.NewClient(cl)
	dirs, err := admin.DescribeAllLogDirs(ctx, nil)
	if err != nil {
		return 0, err
	}
	mine := map[string]bool{}
	dirs.Each(func(d kadm.DescribedLogDir) {
		d.Topics.Each(func(p kadm.DescribedLogDirPartition) {
			if p.Topic == name || strings.HasPrefix(p.Topic, name+"-") || p.Topic == name+".offsets" {
				mine[p.Topic] = true
				size += p.Size
			}
		})
	})
	_, err = admin.DeleteTopics(ctx, slices.Collect(maps.Keys(mine))...)
	return size, err
}
