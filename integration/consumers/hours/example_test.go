package hours_test

import (
	"context"
	"fmt"
	"log"

	"github.com/twmb/franz-go/pkg/kgo"

	"blobfeed/integration/consumers/hours"
)

// A consumer that hands over complete hours. It keeps its place by itself, so it needs no group.
func Example() {
	ctx := context.Background()
	brokers, topic, partitions := sample() // yours
	from := hours.Checkpoint{}             // the one stored with the last hour

	// docs: begin
	offsets := map[int32]kgo.Offset{}
	for p := range int32(partitions) {
		offsets[p] = kgo.NewOffset().AtStart()
		if from.Next != nil {
			offsets[p] = kgo.NewOffset().At(from.Next[p])
		}
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(brokers...),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: offsets}),
	)
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	buffer := hours.New(partitions, from)
	for handedOver := 0; handedOver < 2; { // yours has no end
		fetches := client.PollFetches(ctx)
		if err := fetches.Err(); err != nil {
			log.Fatal(err)
		}
		for r := range fetches.RecordsAll() {
			complete, err := buffer.Add(r.Partition, r.Offset, r.Key, r.Value)
			if err != nil {
				log.Fatal(err)
			}
			for _, hour := range complete {
				// Store hour.Changes and hour.Checkpoint in one step: in one file, or in one transaction.
				fmt.Println(hour.Begin.Format("2006-01-02 15:04"))
				for _, change := range hour.Changes {
					fmt.Printf("  %s %s\n", change.Time.Format("15:04:05"), change.Key)
				}
				handedOver++
			}
		}
	}
	// docs: end

	// Output:
	// 2026-03-01 08:00
	//   08:10:00 ["photos/a.jpg"]
	//   08:59:59 ["photos/c.jpg"]
	//   08:20:00 ["photos/b.jpg"]
	// 2026-03-01 09:00
	//   09:00:00 ["photos/c.jpg"]
}
